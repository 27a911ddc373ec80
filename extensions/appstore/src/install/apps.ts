/** Installed apps: installed, changed, updated, brought back, started, stopped, and removed. */
import { type Actor, errors, type TaskView } from '@portico/sdk';

import type { Catalogue, OfferedApp } from '../apps/catalogue.ts';
import type { InstalledRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { Backups } from './backups.ts';
import type { AppHosts } from './hosts.ts';
import type { Change, Operations } from './operations.ts';
import type { ChangeInput, Draft, Drafts, InstallInput } from './planning/drafts.ts';
import { stackOf } from './planning/layout.ts';
import type { InstalledStore } from './store.ts';
import type { Trial } from './trial.ts';
import { planView } from './views.ts';

/** What the installed apps need. */
export interface AppsParts {
    readonly ctx: Ctx;
    readonly store: InstalledStore;
    readonly catalogue: Catalogue;
    readonly drafts: Drafts;
    readonly trial: Trial;
    readonly hosts: AppHosts;
    readonly operations: Operations;
    readonly backups: Backups;
    readonly machine: Machine;
}

/** What an update is asked for. */
export interface UpdateInput {
    readonly version?: string | undefined;
    readonly backup: boolean;
    readonly consent?: string | undefined;
}

/** Reads and changes the installed apps. */
export class Apps {
    readonly #parts: AppsParts;

    constructor(parts: AppsParts) {
        this.#parts = parts;
    }

    /** Begins an install. @throws APP_CONSENT_REQUIRED 40951, and what {@link Drafts.install} throws */
    async install(
        input: InstallInput & { readonly autoUpdate: string; readonly consent?: string | undefined },
        actor: Actor
    ): Promise<TaskView> {
        const { drafts, store, hosts, operations, machine } = this.#parts;
        const draft = await drafts.install(input, actor);
        requireConsent(draft, input.consent);
        const { name, source, app, keyId, plan, leftover } = draft;
        const { domain, ssl, sslMode, port } = plan.layout;
        const row: InstalledRow = {
            ...{ name, source, app, keyId, port, domain, ssl, sslMode },
            ...{ revision: 0, state: 'installing', hostId: null, autoUpdate: input.autoUpdate },
            ...{ takenBack: '[]', operation: null, lastError: null, createdAt: machine.now() }
        };
        await store.create(row);
        try {
            const hostId = await hosts.create(plan.layout, actor, false);
            await store.update(name, { hostId });
            return await operations.begin(
                {
                    ...{ name, kind: 'install', title: `Install ${name}`, access: 'write', actor },
                    ...{ to: draft.document.version, keepData: leftover !== null }
                },
                async (change) =>
                    this.#tryDraft(change, draft, {
                        because: 'installed',
                        digests: await this.#pull(draft, change)
                    })
            );
        } catch (error) {
            await hosts.remove((await store.find(name))?.hostId ?? null);
            await store.remove(name);
            throw error;
        }
    }

    /** Begins a change of values, address, ports or limits. @throws APP_CONSENT_REQUIRED 40951 */
    async change(
        name: string,
        input: ChangeInput & { readonly consent?: string | undefined },
        actor: Actor
    ): Promise<TaskView> {
        const { drafts, store, operations } = this.#parts;
        const row = await store.get(name);
        operations.refuseBusy(row);
        refuseUnfinished(row);
        const draft = await drafts.change(row, input, { actor });
        requireConsent(draft, input.consent);
        return operations.begin(
            { name, kind: 'change', title: `Change ${name}`, access: 'write', actor },
            async (change) =>
                this.#tryDraft(change, draft, {
                    because: 'changed',
                    digests: await this.#pull(draft, change)
                })
        );
    }

    /** Says when an app updates by itself. */
    async setAutoUpdate(name: string, autoUpdate: string): Promise<void> {
        await this.#parts.store.get(name);
        await this.#parts.store.update(name, { autoUpdate });
    }

    /**
     * Begins an update to what the app's own source offers now.
     *
     * @param actor - null: by itself, in the window; then it never widens anything
     * @throws APP_CONSENT_REQUIRED 40951, FORBIDDEN 40300 for an actor without `write` where consent is needed
     */
    async update(
        name: string,
        { version, backup, consent }: UpdateInput,
        actor: Actor | null
    ): Promise<TaskView> {
        const { store, operations, backups } = this.#parts;
        const row = await store.get(name);
        operations.refuseBusy(row);
        refuseUnfinished(row);
        const offered = await this.#offered(row, version);
        const draft = await this.#parts.drafts.change(row, {}, { actor, offered });
        if (draft.plan.consent !== null && actor?.can('write') !== true) {
            throw errors.forbidden(`${this.#parts.ctx.name}:write`);
        }
        requireConsent(draft, consent);
        const to = draft.document.version;
        return operations.begin(
            { name, kind: 'update', title: `Update ${name} to ${to}`, access: 'run', actor, to },
            async (change) => {
                const digests = await this.#pull(draft, change);
                if (backup) {
                    const { document } = await store.revision(name, row.revision);
                    await backups.take(change, `update to ${to}`, document.backup?.stop ?? true);
                }
                const result = await this.#tryDraft(change, draft, { because: `updated to ${to}`, digests });
                await backups.prune(name);
                return result;
            }
        );
    }

    /** Begins the way back to a revision, with the data that it had or with those of now. */
    async rollback(
        name: string,
        { revision, data }: { readonly revision: number; readonly data: boolean },
        actor: Actor
    ): Promise<TaskView> {
        const { drafts, store, operations, backups, ctx } = this.#parts;
        const row = await store.get(name);
        operations.refuseBusy(row);
        refuseUnfinished(row);
        const draft = await drafts.revision(row, revision, actor);
        const backup = (await store.backups(name)).find((each) => each.revision === revision);
        if (data && backup === undefined) {
            throw errors.invalid([{ path: 'data', message: `There is no backup of revision ${revision}` }]);
        }
        return operations.begin(
            {
                name,
                kind: 'rollback',
                title: `Take ${name} back to revision ${revision}`,
                access: 'write',
                actor
            },
            async (change) => {
                const digests = await this.#pull(draft, change);
                if (data && backup !== undefined) {
                    await backups.take(change, `rollback to revision ${revision}`, true);
                    await change.note({ touched: true });
                    const { snapshot } = backup;
                    await ctx.plugins.container.restore({ stack: stackOf(name), snapshot });
                }
                const because = `rollback to revision ${revision}`;
                const result = await this.#tryDraft(change, draft, { because, digests });
                await backups.prune(name);
                return result;
            }
        );
    }

    /** Starts, stops or restarts an app. @throws IN_USE 40901 while a change is under way */
    control(name: string, action: 'start' | 'stop' | 'restart', actor: Actor): Promise<void> {
        return this.#parts.operations.hold(name, async () => {
            await this.#parts.ctx.plugins.container.control({ stack: stackOf(name), action }, { actor });
        });
    }

    /** Begins the removal of an app; with `keepData` its volumes stay for a later install. */
    async remove(name: string, keepData: boolean, actor: Actor): Promise<TaskView> {
        const { operations } = this.#parts;
        return operations.begin(
            { name, kind: 'remove', title: `Remove ${name}`, access: 'write', actor, keepData },
            async (change) => {
                await operations.finishRemoval(change);
                return null;
            }
        );
    }

    /** Removes volumes that an app left. @throws NOT_FOUND 40400 */
    async dropLeftover(name: string, actor: Actor): Promise<void> {
        const { store, ctx } = this.#parts;
        if ((await store.leftover(name)) === null) {
            throw errors.notFound('There are no data of that name');
        }
        if ((await store.find(name)) !== null) {
            throw errors.inUse(name, 'An app of this name is installed, and takes these data up');
        }
        await ctx.plugins.container.remove({ stack: stackOf(name), volumes: true }, { actor });
        await store.dropLeftover(name);
    }

    /** What the app's own source offers, where that is another version. */
    async #offered({ source, app }: InstalledRow, version: string | undefined): Promise<OfferedApp> {
        const offered = await this.#parts.catalogue.get(source, app);
        if (version !== undefined && version !== offered.row.version) {
            const message = `The source has version ${offered.row.version} now, and not ${version}`;
            throw errors.invalid([{ path: 'version', message }]);
        }
        return offered;
    }

    #pull({ plan }: Draft, { run }: Change): Promise<Readonly<Record<string, string>>> {
        return this.#parts.trial.pull(plan.images, plan.digests, run);
    }

    async #tryDraft(
        change: Change,
        draft: Draft,
        { because, digests }: { readonly because: string; readonly digests: Readonly<Record<string, string>> }
    ): Promise<{ name: string; version: string; revision: number }> {
        const { ctx, drafts, trial, store, hosts, machine } = this.#parts;
        const { row, run } = change;
        const { name, document, documentHash, values, plan } = draft;
        await change.note({ touched: true });
        await trial.run({ ...drafts.target(draft), digests }, run);
        const hostId = await this.#followHost(change, draft);
        const by = run.actor?.username ?? null;
        const { layout, exposure } = plan;
        const { version } = document;
        const revision = await store.commit(
            name,
            { version, at: machine.now(), by, because, documentHash, values, layout, digests, exposure },
            { hostId }
        );
        if (change.operation.kind === 'install') {
            await hosts.enable(hostId);
            await store.dropLeftover(name);
        }
        ctx.log.info('An app was changed', { app: name, revision, because, was: row.revision });
        return { name, version, revision };
    }

    async #followHost({ row, run }: Change, { plan }: Draft): Promise<number | null> {
        const { store, hosts } = this.#parts;
        if (row.revision === 0 || run.actor === null) {
            return (await store.get(row.name)).hostId;
        }
        const { layout } = await store.revision(row.name, row.revision);
        return hosts.follow(row.hostId, layout, plan.layout, run.actor);
    }
}

/** @throws APP_CONSENT_REQUIRED 40951 */
function requireConsent({ plan }: Draft, consent: string | undefined): void {
    if (plan.consent !== null && plan.consent !== consent) {
        throw fail.APP_CONSENT_REQUIRED({ plan: planView(plan) });
    }
}

/** @throws IN_USE 40901 */
function refuseUnfinished({ name, revision, state }: InstalledRow): void {
    if (revision === 0 || state === 'failed') {
        throw errors.inUse(
            name,
            'A change of this app failed and could not be taken back yet: see its `lastError`. It is tried again each minute'
        );
    }
}
