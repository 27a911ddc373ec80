/** Services as units of systemd, where that is the first process of the machine. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { KeyedMutex } from '@portico/sdk';

import {
    type OutputOptions,
    type ServiceCommand,
    type ServiceLine,
    ServiceNotReloadable,
    type ServicesPort,
    type ServiceStatus,
    ServiceUnknown,
    StorageFull
} from '../port.ts';
import { commandHash } from '../supervisor/service/run.ts';
import { idOf, ownerMark, servicesFolder, type Target } from '../supervisor/socket/protocol.ts';
import { isLeftover, Store } from '../supervisor/store.ts';
import { takeFromSupervisor } from '../takeover.ts';
import { readJournal } from './journal.ts';
import { noRuns, readRuns, writeAsked, writeRuns } from './runs.ts';
import { Systemctl, type UnitStatus } from './systemctl.ts';
import { journalIdentifier, type UnitParts } from './unit.ts';
import { UnitFiles } from './unit-files.ts';

/** What the services of systemd work with. */
export interface SystemdOptions {
    /** The folder of the panel's services, absolute. */
    readonly folder: string;
    readonly log: { warn(message: string, fields?: object): void };
}

/** A service as its folder has it. */
interface Kept extends UnitParts {
    readonly store: Store;
    readonly unit: string;
}

const stableMs = 60_000;

/**
 * Services as written units of systemd. The folder of a service is the same as under the panel's own supervisor: `spec.json` says what runs and
 * `state.json` whether it should; the units follow. So each step may be cut off, and `open` finishes it.
 */
export class SystemdServices implements ServicesPort {
    readonly #options: SystemdOptions;
    readonly #systemd = new Systemctl();
    readonly #files: UnitFiles;
    /** One change of a service at a time. */
    readonly #changes = new KeyedMutex();
    readonly #closing = new AbortController();
    /** Followers of the output of a service end when the service is removed. */
    readonly #followed = new Map<string, AbortController>();
    #ready: Promise<void> | null = null;

    constructor(options: SystemdOptions) {
        this.#options = options;
        this.#files = new UnitFiles(options.folder);
    }

    async open(): Promise<void> {
        await this.#opened().catch((error: unknown) =>
            this.#options.log.warn('systemd could not take all services', { error })
        );
    }

    async put(owner: string, name: string, command: ServiceCommand): Promise<ServiceStatus> {
        return this.#change({ owner, name }, async (id) => {
            const known = this.#find(id);
            if (known === null || !isDeepStrictEqual(command, known.spec.command)) {
                const kept = this.#write(id, { mark: known?.spec.mark ?? randomUUID(), command }, known);
                await this.#systemd.reload();
                if (kept.store.readState().wanted) {
                    await this.#restart(kept);
                }
                this.#files.removeInputs(kept);
            }
            return this.#status(this.#require(id));
        });
    }

    async list(owner: string): Promise<readonly ServiceStatus[]> {
        await this.#opened();
        const kept = this.#ids()
            .filter((id) => id.startsWith(`${owner}${ownerMark}`))
            .flatMap((id) => this.#find(id) ?? [])
            .sort((one, two) => (one.name < two.name ? -1 : 1));
        const units = await this.#systemd.show(kept.map(({ unit }) => unit));
        return kept.map((each) => statusOf(each, units.get(each.unit)));
    }

    start(owner: string, name: string): Promise<ServiceStatus> {
        return this.#with({ owner, name }, async (kept) => {
            if ((await this.#show(kept)).active !== 'active' || !kept.store.readState().wanted) {
                await this.#restart(kept);
            }
        });
    }

    stop(owner: string, name: string): Promise<ServiceStatus> {
        return this.#with({ owner, name }, async (kept) => {
            this.#want(kept, false);
            await this.#end(kept);
        });
    }

    restart(owner: string, name: string): Promise<ServiceStatus> {
        return this.#with({ owner, name }, (kept) => this.#restart(kept));
    }

    reload(owner: string, name: string): Promise<ServiceStatus> {
        return this.#with({ owner, name }, async (kept) => {
            const { reloadSignal } = kept.spec.command;
            if (reloadSignal === null || (await this.#show(kept)).active !== 'active') {
                throw new ServiceNotReloadable(
                    reloadSignal === null ? 'It has no reloadSignal' : 'It does not run'
                );
            }
            await this.#systemd.signal(kept.unit, reloadSignal);
        });
    }

    async remove(owner: string, name: string): Promise<void> {
        const id = await this.#change({ owner, name }, async (each) => {
            const kept = this.#find(each);
            if (kept !== null) {
                this.#want(kept, false);
                await this.#end(kept);
                this.#files.remove(kept.unit);
                await this.#systemd.reload();
                kept.store.remove();
            }
            return each;
        });
        this.#unfollow(id);
    }

    async adopt(from: string, to: string): Promise<void> {
        await this.#opened();
        for (const id of this.#ids().filter((each) => each.startsWith(`${from}${ownerMark}`))) {
            const name = id.slice(id.indexOf(ownerMark) + 1);
            await this.remove(to, name);
            await this.#change({ owner: from, name }, async () => {
                this.#find(id)?.store.move(this.#folderOf(idOf({ owner: to, name })));
                const moved = this.#find(idOf({ owner: to, name }));
                if (moved !== null) {
                    // The same unit with another path: its program goes on.
                    this.#files.write(moved);
                    await this.#systemd.reload();
                }
            });
            this.#unfollow(id);
        }
    }

    async *output(owner: string, name: string, options: OutputOptions): AsyncGenerator<ServiceLine> {
        await this.#opened();
        const id = idOf({ owner, name });
        const { unit, spec } = this.#require(id);
        const removed = this.#followed.get(id) ?? new AbortController();
        this.#followed.set(id, removed);
        const signal = AbortSignal.any([options.signal, removed.signal, this.#closing.signal]);
        const source = { unit, identifier: journalIdentifier(spec), uid: spec.command.account?.uid ?? 0 };
        yield* readJournal(source, { ...options, signal });
    }

    async close(): Promise<void> {
        this.#closing.abort();
        await this.#changes.idle();
    }

    /** Takes what the supervisor kept, and finishes changes that were cut off. What failed is tried again by the next call. */
    #opened(): Promise<void> {
        this.#ready ??= this.#open().catch((error: unknown) => {
            this.#ready = null;
            throw error;
        });
        return this.#ready;
    }

    async #open(): Promise<void> {
        const { folder, log } = this.#options;
        mkdirSync(join(folder, servicesFolder), { recursive: true, mode: 0o700 });
        for (const name of readdirSync(join(folder, servicesFolder)).filter(isLeftover)) {
            rmSync(this.#folderOf(name), { recursive: true, force: true });
        }
        await takeFromSupervisor(folder);
        const all = this.#ids().flatMap((id) => this.#find(id) ?? []);
        const units = new Set(all.map(({ unit }) => unit));
        const strays = [
            ...this.#files.list().filter((unit) => !units.has(unit)),
            ...this.#files.listMoved(all)
        ];
        for (const stray of strays) {
            await this.#systemd.stop(stray, 0);
            this.#files.remove(stray);
        }
        if (all.length + strays.length === 0) {
            return;
        }
        const work = async (step: (kept: Kept) => unknown): Promise<void> => {
            for (const each of await Promise.allSettled(all.map(async (kept) => step(kept)))) {
                if (each.status === 'rejected') {
                    log.warn('A service is not as it should be', { error: each.reason });
                }
            }
        };
        await work((kept) => this.#prepare(kept));
        await this.#systemd.reload();
        await work((kept) => this.#reconcile(kept));
    }

    /** Makes or changes the folder of a service and its unit. When that fails nothing changed. */
    #write(id: string, spec: Kept['spec'], known: Kept | null): Kept {
        const store = known?.store ?? new Store(this.#folderOf(id));
        const kept = this.#keptOf(id, store, spec);
        if (known !== null) {
            this.#files.writeInputs(kept);
        }
        store.create(spec);
        try {
            this.#prepare(kept);
        } catch (error) {
            if (known === null) {
                store.remove();
            } else {
                store.create(known.spec);
            }
            throw error;
        }
        return kept;
    }

    /** Writes the files of a service that are missing or say something else. */
    #prepare(kept: Kept): void {
        if (readRuns(kept.folder) === null) {
            writeRuns(kept.folder, noRuns);
        }
        writeAsked(kept.folder, false);
        this.#files.writeInputs(kept);
        this.#files.write(kept);
    }

    /** Brings a unit to what the folder of its service says; a run that is as it should be goes on. */
    async #reconcile(kept: Kept): Promise<void> {
        const { wanted } = kept.store.readState();
        const { active } = await this.#show(kept);
        const { due, command } = readRuns(kept.folder) ?? noRuns;
        const isOther = active === 'active' && command !== commandHash(kept.spec.command);
        this.#files.enable(kept.unit, wanted);
        if (!wanted) {
            await this.#end(kept);
        } else if (isOther || (due && ['inactive', 'failed'].includes(active))) {
            await this.#restart(kept);
        }
        this.#files.removeInputs(kept);
    }

    /** Starts it with its present command, at once, whatever it does now. */
    async #restart(kept: Kept): Promise<void> {
        this.#want(kept, true);
        await this.#end(kept);
        writeRuns(kept.folder, { ...(readRuns(kept.folder) ?? noRuns), failures: 0, due: true });
        await this.#systemd.start(kept.unit);
    }

    #want(kept: Kept, wanted: boolean): void {
        kept.store.writeState({ ...kept.store.readState(), wanted });
        this.#files.enable(kept.unit, wanted);
    }

    /** Ends it with all its processes, if it runs. */
    async #end(kept: Kept): Promise<void> {
        const { active } = await this.#show(kept);
        if (active !== 'inactive') {
            writeAsked(kept.folder, true);
            await this.#systemd.stop(kept.unit, kept.spec.command.stopSeconds * 1000);
            writeAsked(kept.folder, false);
        }
    }

    async #show({ unit }: Kept): Promise<UnitStatus> {
        return (await this.#systemd.show([unit])).get(unit) ?? { active: 'inactive', pid: null };
    }

    async #status(kept: Kept): Promise<ServiceStatus> {
        return statusOf(kept, await this.#show(kept));
    }

    async #with(target: Target, work: (kept: Kept) => Promise<void>): Promise<ServiceStatus> {
        return this.#change(target, async (id) => {
            await work(this.#require(id));
            return this.#status(this.#require(id));
        });
    }

    async #change<T>(target: Target, work: (id: string) => Promise<T>): Promise<T> {
        const id = idOf(target);
        await this.#opened();
        return this.#changes.run(id, async () => {
            try {
                return await work(id);
            } catch (error) {
                const { code } = error as NodeJS.ErrnoException;
                throw code === 'ENOSPC' || code === 'EDQUOT'
                    ? new StorageFull('There is no space for the service', { cause: error })
                    : error;
            }
        });
    }

    #unfollow(id: string): void {
        this.#followed.get(id)?.abort();
        this.#followed.delete(id);
    }

    #ids(): readonly string[] {
        return readdirSync(join(this.#options.folder, servicesFolder)).filter((name) => !isLeftover(name));
    }

    #folderOf(id: string): string {
        return join(this.#options.folder, servicesFolder, id);
    }

    /** @throws ServiceUnknown */
    #require(id: string): Kept {
        const kept = this.#find(id);
        if (kept === null) {
            throw new ServiceUnknown(`There is no service ${id.slice(id.indexOf(ownerMark) + 1)}`);
        }
        return kept;
    }

    /** Null when there is none, or when its folder cannot be read. */
    #find(id: string): Kept | null {
        const store = new Store(this.#folderOf(id));
        try {
            return this.#keptOf(id, store, store.readSpec());
        } catch {
            return null;
        }
    }

    #keptOf(id: string, store: Store, spec: Kept['spec']): Kept {
        const at = id.indexOf(ownerMark);
        const name = id.slice(at + 1);
        const unit = this.#files.nameOf({ name, spec });
        return { owner: id.slice(0, at), name, folder: store.folder, spec, store, unit };
    }
}

function statusOf({ name, spec, store, folder }: Kept, unit: UnitStatus | undefined): ServiceStatus {
    const { restart, grants } = spec.command;
    const { exits, failures, due, startedAt, lastExit } = readRuns(folder) ?? noRuns;
    const pid = unit?.active === 'active' || unit?.active === 'deactivating' ? unit.pid : null;
    const isOver = restart !== 'always' && !due && lastExit?.code === 0;
    return {
        name,
        state: pid !== null ? 'running' : !store.readState().wanted || isOver ? 'stopped' : 'failed',
        pid,
        startedAt: pid === null ? null : startedAt,
        exits,
        lastExit,
        grants,
        failures: pid !== null && Date.now() - startedAt > stableMs ? 0 : failures
    };
}
