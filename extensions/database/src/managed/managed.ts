/** Servers that the panel runs: services that outlive the plugin and the panel. */
import { type Actor, errors, isFailure, type TaskRun, type TaskView } from '@portico/sdk';

import { makePassword } from '../credentials/passwords.ts';
import type { ManagedRow } from '../entities.ts';
import type { KindName } from '../kinds/kind.ts';
import type { Connections } from '../servers/connections.ts';
import type { Ctx } from '../settings.ts';
import type { Containers } from './containers/containers.ts';
import { images } from './containers/images.ts';
import type { Engine } from './engine.ts';
import type { Folders } from './folders.ts';
import type { Programs } from './kinds/programs.ts';
import { makeCertificate } from './network/certificate.ts';
import type { Ports } from './network/ports.ts';
import { ownNames } from './network/remote.ts';
import { isRelease } from './releases.ts';
import type { ManagedRows, ManagedServer, NewManaged } from './rows.ts';
import { type ManagedState, stateOf } from './states.ts';
import type { ServerTasks } from './tasks.ts';
import type { Upgrades } from './upgrades.ts';

/** How a new server comes to its data. */
export interface Source {
    /** Fills the empty data folder, with the panel's account and its password. */
    fill(found: ManagedServer, password: string, signal: AbortSignal): Promise<void>;
    /** Is called when the server answers. */
    finish(id: number): Promise<void>;
}

/** What the servers need. */
export interface ManagedOptions {
    readonly ctx: Ctx;
    readonly connections: Connections;
    readonly rows: ManagedRows;
    readonly programs: Programs;
    readonly containers: Containers;
    readonly folders: Folders;
    readonly ports: Ports;
    readonly engines: Readonly<Record<KindName, Engine>>;
    readonly tasks: ServerTasks;
    readonly upgrades: Upgrades;
}

const titles = { start: 'Start', stop: 'Stop', restart: 'Restart' } as const;
const programs = { mysql: 'mariadbd', postgresql: 'postgres' } as const;

/** Makes, starts, stops and removes servers. */
export class ManagedServers {
    readonly #options: ManagedOptions;

    constructor(options: ManagedOptions) {
        this.#options = options;
    }

    /** States of all servers that the panel runs, by number. */
    async states(): Promise<ReadonlyMap<number, ManagedState>> {
        const { rows, programs: running, connections } = this.#options;
        const all = await rows.all();
        const services = all.size === 0 ? new Map() : await running.all([...all.values()]);
        return new Map(
            [...all].map(([id, row]) => [id, stateOf(row, services.get(id), connections.reached(id))])
        );
    }

    /** Numbers of those that need not answer: they were stopped, or are being made or removed. */
    async resting(): Promise<ReadonlySet<number>> {
        const [all, states] = [await this.#options.rows.all(), await this.states()];
        const resting = [...all.values()].filter(
            ({ id, phase }) => phase !== 'ready' || states.get(id)?.state === 'stopped'
        );
        return new Set(resting.map(({ id }) => id));
    }

    /** Begins a task that makes a server, by default an empty one. @throws TOOL_MISSING 50302, CONFLICT 40900, VALIDATION_FAILED 40001 */
    async create(
        input: NewManaged,
        actor: Actor,
        source: Source = {
            fill: (found, password, signal) => this.#options.programs.initialise(found, password, signal),
            finish: async () => undefined
        }
    ): Promise<TaskView> {
        const { ctx, folders, ports, rows } = this.#options;
        const release = await this.#release(input);
        if (input.runtime === 'native' && !folders.isShortEnough) {
            throw errors.invalid([
                {
                    path: 'dataFolder',
                    message: 'The folder of the settings is too long for the path of a socket'
                }
            ]);
        }
        const password = makePassword();
        const sealed = await ctx.secrets.seal(password);
        const port = await ports.choose(input.port);
        const id = await rows.insert(input, { release, port, password: sealed });
        const what = { kind: 'create-server', title: `Make ${input.name}`, access: 'write', actor };
        try {
            return await this.#options.tasks.run(id, what, async (run) => {
                try {
                    await this.#build(id, password, source, run);
                    return { serverId: id };
                } catch (error) {
                    await this.#demolish(id, false);
                    throw error;
                }
            });
        } catch (error) {
            await rows.remove(id);
            throw error;
        }
    }

    /** Begins a task that starts, stops or restarts a server. @throws NOT_MANAGED 40950, IN_USE 40901 */
    async change(id: number, change: 'start' | 'stop' | 'restart', actor: Actor): Promise<TaskView> {
        const { rows, programs: running } = this.#options;
        const { server } = await rows.get(id);
        const title = `${titles[change]} ${server.name}`;
        return this.#options.tasks.run(
            id,
            { kind: `${change}-server`, title, access: 'operate', actor },
            async (run) => {
                if (change === 'stop') {
                    await running.change(id, 'stop');
                    return { serverId: id };
                }
                await running.launch(id, change);
                await running.waitUp(id, run.signal);
                return { serverId: id };
            }
        );
    }

    /** Begins a task that stops a server and removes it, with or without its data. @throws NOT_MANAGED 40950, IN_USE 40901 */
    async remove(id: number, data: 'keep' | 'delete', actor: Actor): Promise<TaskView> {
        const { rows } = this.#options;
        const { server } = await rows.get(id);
        const what = { kind: 'remove-server', title: `Remove ${server.name}`, access: 'write', actor };
        return this.#options.tasks.run(id, what, async () => {
            await rows.update(id, { phase: data === 'keep' ? 'removing' : 'deleting' });
            return { serverId: id, kept: await this.#demolish(id, data === 'keep') };
        });
    }

    /** Begins a task that lets other machines reach a server over TLS, or no longer, and restarts it. @throws NOT_MANAGED 40950, IN_USE 40901 */
    async open(
        id: number,
        { remote, allow }: { readonly remote: boolean; readonly allow: readonly string[] },
        actor: Actor
    ): Promise<TaskView> {
        const { rows, programs: running, folders } = this.#options;
        const { server } = await rows.get(id);
        const title = `${remote ? 'Open' : 'Close'} ${server.name}`;
        return this.#options.tasks.run(
            id,
            { kind: 'open-server', title, access: 'write', actor },
            async (run) => {
                const before = await rows.get(id);
                if (remote && before.server.ca === null) {
                    const made = makeCertificate(server.name, ownNames());
                    await folders.certify(id, await running.account(server.kind), made);
                    await rows.certify(id, made.certificate);
                }
                const { managed } = before;
                try {
                    await this.#restart(id, { remote, allow }, run.signal);
                } catch (error) {
                    await this.#restart(
                        id,
                        { remote: managed.remote, allow: managed.allow },
                        this.#options.ctx.signal
                    );
                    throw error;
                }
                return { serverId: id };
            }
        );
    }

    /** One that is stopped stays stopped. */
    async #restart(id: number, change: Partial<ManagedRow>, signal: AbortSignal): Promise<void> {
        const { programs: running } = this.#options;
        const before = await running.info(id);
        await this.set(id, change);
        if (before?.state === 'running') {
            await running.launch(id, 'restart');
            await running.waitUp(id, signal);
        }
    }

    /** Changes what a server may use, from its next start on. */
    async set(
        id: number,
        change: Partial<
            Pick<ManagedRow, 'memoryBytes' | 'preset' | 'options' | 'remote' | 'allow' | 'pointInTime'>
        >
    ): Promise<void> {
        const { rows, programs: running } = this.#options;
        await rows.update(id, change);
        await running.configure(await rows.get(id));
    }

    /** Undoes or finishes what a killed panel left half done, and brings back services that are gone. */
    async sweep(): Promise<void> {
        const { ctx, rows, programs: running, upgrades } = this.#options;
        for (const { id, phase } of (await rows.all()).values()) {
            if (this.#options.tasks.isBusy(id)) {
                continue;
            }
            try {
                if (phase === 'upgrading' || phase === 'switching') {
                    await upgrades.recover(id);
                } else if (phase !== 'ready') {
                    await this.#demolish(id, phase === 'removing');
                } else {
                    await upgrades.tidy(id);
                    if ((await running.info(id)) === null) {
                        await running.put(await rows.get(id));
                    }
                }
            } catch (error) {
                ctx.log.warn('A server that the panel runs could not be brought in order', {
                    server: id,
                    error
                });
            }
        }
    }

    async #build(id: number, password: string, source: Source, { signal, progress }: TaskRun): Promise<void> {
        const { rows, programs: running } = this.#options;
        const found = await rows.get(id);
        if (found.managed.runtime === 'native') {
            progress(0.1, 'Making its folders');
            await this.#makeFolders(found);
            progress(0.2, 'Filling its data folder');
            await source.fill(found, password, signal);
        }
        progress(0.7, 'Starting');
        await running.configure(found);
        await running.put(found);
        await running.waitUp(id, signal);
        await source.finish(id);
        await rows.update(id, { phase: 'ready' });
    }

    async #makeFolders({ server: { id, kind }, managed }: ManagedServer): Promise<void> {
        const { folders, programs: running } = this.#options;
        const account = await running.account(kind);
        await folders.create(id, account);
        if (managed.pointInTime === 'on') {
            await folders.openArchive(id, account);
        }
    }

    /** Takes away what there is of a server. Returns where its data are kept; null where they are not. */
    async #demolish(id: number, keepsData: boolean): Promise<string | null> {
        const { connections, containers, rows } = this.#options;
        const found = await rows.get(id);
        const kept =
            found.managed.runtime === 'container'
                ? await containers.remove(id, keepsData)
                : await this.#removeProgram(found, keepsData);
        await rows.remove(id);
        connections.forget(id);
        return kept;
    }

    async #removeProgram(found: ManagedServer, keepsData: boolean): Promise<string | null> {
        const { folders, programs: running } = this.#options;
        await running.remove(found.server.id);
        const kept = keepsData ? await this.#keep(found) : null;
        await folders.remove(found.server.id);
        return kept;
    }

    /** A killed panel may have moved the data already. */
    async #keep({ server: { id, name }, managed }: ManagedServer): Promise<string | null> {
        try {
            return await this.#options.folders.keep(id, managed.folder, name);
        } catch (error) {
            if (isFailure(error) && error.reason === 'NOT_FOUND') {
                return null;
            }
            throw error;
        }
    }

    async #release({ kind, runtime, release: wanted }: NewManaged): Promise<string> {
        if (runtime === 'container') {
            return this.#releaseOfImage(kind, wanted);
        }
        const engine = this.#options.engines[kind];
        const all = await engine.releases();
        const [newest] = all;
        if (newest === undefined) {
            throw errors.toolMissing(programs[kind], engine.install);
        }
        if (wanted !== undefined && !all.includes(wanted)) {
            throw errors.invalid([
                { path: 'release', message: `${wanted} is not installed; there is ${all.join(', ')}` }
            ]);
        }
        return wanted ?? newest;
    }

    async #releaseOfImage(kind: KindName, wanted: string | undefined): Promise<string> {
        const { releases } = images[kind];
        const release = wanted ?? releases[0] ?? '';
        if (!isRelease(release)) {
            throw errors.invalid([
                { path: 'release', message: `A release is a number, such as ${releases[0]}` }
            ]);
        }
        await this.#options.containers.check();
        return release;
    }
}
