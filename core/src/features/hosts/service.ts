/**
 * Hosts: reads them, and takes changes through the hooks and the engine's queue into the database. A change starts from the present row. When
 * another change was faster, it starts again from the new row, unless the caller named a version.
 */
import { AsyncResource } from 'node:async_hooks';

import { verify } from '@node-rs/bcrypt';
import { type Reply, reply } from '@portico/sdk';

import type { Draft, Engine, HostRow, HostState, Plan, WaitsForReload } from '../../engine/change.ts';
import type { EngineConfig } from '../../engine/port.ts';
import type { Site } from '../../engine/site.ts';
import { authorOf, type Call } from '../../platform/call.ts';
import { fail } from '../../platform/errors.ts';
import { requireVersion } from '../../platform/version.ts';
import { checkAccess } from './checks/access-check.ts';
import type { CheckItem, Checklist } from './checks/checklist.ts';
import type { HostList, HostPage } from './list.ts';
import { bodyOf, hashesOf, type HostHooks, HostPreparation, type PreparationOptions } from './preparation.ts';
import { checkNames, mayChange, refuse } from './rules/refusals.ts';
import { checkSite } from './rules/safety.ts';
import type { AccessCheck, AccessVerdict } from './schema/access-check.ts';
import type { HostBatch, HostChange, HostQuery } from './schema/bodies.ts';
import type { HostView } from './schema/view.ts';
import { viewOf } from './view.ts';

const waitsForReload: WaitsForReload = 'Waits for a reload';

/** What {@link Hosts} works with. */
export interface HostsOptions extends PreparationOptions {
    readonly list: HostList;
    readonly checklist: Checklist;
    /** The configuration of a host without the parts that need `engine:secrets`. */
    mask(config: EngineConfig, site: Site): EngineConfig;
}

/** How often a change without If-Match is tried when others are faster. */
const mostAttempts = 16;

/** The row that a change started from is no longer the present one. */
class Moved extends Error {}

/** One row of a change: null before a creation, null after a removal. */
interface Step {
    readonly before: HostRow | null;
    readonly after: HostRow | null;
}

/** The service behind `/api/hosts`. Replies of writes carry `X-Engine-Reload`. A write that fails with 42200 or 50301 has changed nothing. */
export class Hosts {
    readonly #options: HostsOptions;
    readonly #engine: Engine;
    readonly #hooks: HostHooks;
    readonly #preparation: HostPreparation;
    readonly #context = new AsyncResource('HostChange');

    constructor(options: HostsOptions) {
        this.#options = options;
        this.#engine = options.engine;
        this.#hooks = options.hooks;
        this.#preparation = new HostPreparation(options);
    }

    /** One page of the list. */
    page(query: HostQuery): HostPage {
        return this.#options.list.page(query);
    }

    /** @throws NOT_FOUND */
    get(id: number): HostView {
        return this.#view(this.#existing(id));
    }

    /** @throws VALIDATION_FAILED, FORBIDDEN (`hosts:unsafe`), CONFLICT (`data.field`), REFUSED_BY_PLUGIN */
    create(body: HostChange, call: Call, owner: string | null = call.actor.plugin): Promise<Reply<HostView>> {
        return this.#add(body, call, owner);
    }

    /** @throws as `create`, and NOT_FOUND, VERSION_STALE (`data.version`) */
    update(id: number, body: HostChange, call: Call): Promise<Reply<HostView>> {
        return this.#attempt(
            [id],
            ({ version }) => requireVersion(call, body.version, version),
            async ([before]) => {
                const row = before as HostRow;
                const after = await this.#preparation.prepare(row, body, call, { id, owner: row.owner });
                if (after === row) {
                    return reply.with(this.#view(row), { headers: { 'x-engine-reload': 'false' } });
                }
                await this.#guard([{ before: row, after }], call);
                return this.#run([{ before: row, after }], call, 'update', (seen, headers) =>
                    reply.with(seen(after), { headers })
                );
            }
        );
    }

    /** @throws NOT_FOUND, VERSION_STALE, REFUSED_BY_PLUGIN */
    remove(id: number, call: Call): Promise<Reply<null>> {
        return this.#attempt(
            [id],
            ({ version }) => requireVersion(call, undefined, version),
            async ([before]) => {
                const row = before as HostRow;
                await this.#guard([{ before: row, after: null }], call);
                return this.#run<null>([{ before: row, after: null }], call, 'delete', (_seen, headers) =>
                    reply.with(null, { headers })
                );
            }
        );
    }

    /** Creates a host like another one, under its own name and with the same passwords. @throws as `create`, and NOT_FOUND */
    async clone(id: number, domain: string, call: Call): Promise<Reply<HostView>> {
        const { site, tags, notes } = this.#existing(id);
        const body: HostChange = { ...bodyOf(site), domain, tags, notes };
        return this.#add(body, call, call.actor.plugin, hashesOf(site));
    }

    /** Changes all of the hosts or none, in one apply. @throws NOT_FOUND with `data.ids`, and as `update` */
    async batch({ ids, action }: HostBatch, call: Call): Promise<Reply<readonly HostView[] | null>> {
        const repeated = ids.flatMap((id, at) =>
            ids.indexOf(id) === at ? [] : [{ path: `ids.${at}`, message: `ids.${at} is there twice` }]
        );
        refuse(repeated);
        return this.#attempt(
            ids,
            () => undefined,
            async (rows) => {
                const steps: Step[] = [];
                const enabled = action === 'enable';
                for (const before of rows) {
                    const ground = { id: before.site.id, owner: before.owner };
                    const after =
                        action === 'delete'
                            ? null
                            : await this.#preparation.prepare(before, { enabled }, call, ground);
                    steps.push({ before, after });
                }
                const changed = steps.filter(({ before, after }) => before !== after);
                await this.#guard(changed, call);
                const answer = (seen: (row: HostRow) => HostView): readonly HostView[] | null =>
                    action === 'delete'
                        ? null
                        : steps.flatMap(({ before, after }) =>
                              after === null ? [] : [after === before ? this.#view(after) : seen(after)]
                          );
                if (changed.length === 0) {
                    return reply.with(
                        answer((row) => this.#view(row)),
                        { headers: { 'x-engine-reload': 'false' } }
                    );
                }
                return this.#run(changed, call, action, (seen, headers) =>
                    reply.with(answer(seen), { headers })
                );
            }
        );
    }

    /** Tells whether `create` would reload the engine. Changes nothing. @throws as `create` */
    async validate(body: HostChange, call: Call): Promise<{ readonly reload: boolean }> {
        const row = await this.#preparation.prepare(null, body, call, { id: 0, owner: null, dry: true });
        await this.#guard([{ before: null, after: row }], call);
        return this.#try((draft) => {
            checkNames(draft, row.site, new Set());
            refuse(checkSite(row.site, this.#preparation.safetyIn(draft)));
            const id = draft.nextHostId();
            return { hosts: [{ id, row: { ...row, site: { ...row.site, id } } }] };
        });
    }

    /** Tells whether `update` would reload the engine. Changes nothing. @throws as `update` */
    validateChange(id: number, body: HostChange, call: Call): Promise<{ readonly reload: boolean }> {
        return this.#attempt(
            [id],
            ({ version }) => requireVersion(call, body.version, version),
            async ([before]) => {
                const row = before as HostRow;
                const ground = { id, owner: row.owner, dry: true };
                const after = await this.#preparation.prepare(row, body, call, ground);
                const steps = after === row ? [] : [{ before: row, after }];
                await this.#guard(steps, call);
                return steps.length === 0
                    ? { reload: false }
                    : this.#try((draft) => this.#plan(draft, steps));
            }
        );
    }

    async #try(plan: (draft: Draft) => Plan): Promise<{ readonly reload: boolean }> {
        return { reload: (await this.#engine.tryChange({ plan })).reloaded };
    }

    /** The engine's configuration of one host. Parts are masked without `engine:secrets` and a fresh session. @throws NOT_FOUND */
    preview(id: number, call: Call): EngineConfig {
        const { site } = this.#existing(id);
        const config = this.#engine.preview(site);
        return call.actor.can('engine:secrets') && call.actor.fresh
            ? config
            : this.#options.mask(config, site);
    }

    /** Tries the host from its name to its upstream. @throws NOT_FOUND */
    async check(id: number, call: Call): Promise<readonly CheckItem[]> {
        this.#existing(id);
        return this.#options.checklist(id, call.signal);
    }

    /**
     * Tells whether a request would get into the host. A password is compared only for a caller who may set it: anyone else could guess it here.
     * @throws NOT_FOUND, FORBIDDEN
     */
    async checkAccess(id: number, request: AccessCheck, call: Call): Promise<AccessVerdict> {
        const { site } = this.#existing(id);
        if (request.password !== undefined && !call.actor.can('hosts:write')) {
            throw fail.FORBIDDEN({ permission: 'hosts:write' });
        }
        return checkAccess(site, request, verify);
    }

    /** Holds a row that does not come through the API (restore, import) against the same rules. @throws VALIDATION_FAILED, FORBIDDEN */
    vet(call: Call, before: HostRow | null, after: HostRow | null): void {
        if (after !== null) {
            mayChange(call, before?.site ?? null, after.site);
            refuse(checkSite(after.site, this.#preparation.safetyIn(this.#engine.draft())));
        }
    }

    #view(row: HostRow): HostView {
        return viewOf(row, this.#engine.stateOf(row));
    }

    #existing(id: number): HostRow {
        const row = this.#engine.draft().hosts.get(id);
        if (row === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no host ${id}` });
        }
        return row;
    }

    async #guard(steps: readonly Step[], call: Call): Promise<void> {
        for (const { before, after } of steps) {
            await this.#hooks.guard(
                before === null ? null : this.#view(before),
                after === null ? null : this.#view(after),
                call
            );
        }
    }

    /** Checks, inside the queue, what depends on the changes ahead of this one. @throws Moved, CONFLICT, VALIDATION_FAILED */
    #plan(draft: Draft, steps: readonly Step[]): Plan {
        const going = new Set(steps.flatMap(({ before }) => (before === null ? [] : [before.site.id])));
        for (const { before, after } of steps) {
            if (before !== null && draft.hosts.get(before.site.id)?.version !== before.version) {
                throw new Moved();
            }
            if (after !== null) {
                checkNames(draft, after.site, going);
                refuse(checkSite(after.site, this.#preparation.safetyIn(draft)));
            }
        }
        return {
            hosts: steps.map(({ before, after }) => ({ id: (after ?? before)?.site.id ?? 0, row: after }))
        };
    }

    /** Applies and commits the steps. `answer` is called twice: for the stored reply, and after the commit with the rows' new states. */
    async #run<T>(
        steps: readonly Step[],
        call: Call,
        action: string,
        answer: (seen: (row: HostRow) => HostView, headers: Readonly<Record<string, string>>) => Reply<T>
    ): Promise<Reply<T>> {
        const single =
            steps.length === 1 && action !== 'enable' && action !== 'disable' ? steps[0] : undefined;
        const { value, outcome } = await this.#engine.change({
            by: authorOf(call),
            plan: (draft) => this.#plan(draft, steps),
            commit: (tx, { applied, reloaded }) => {
                const seen = (row: HostRow): HostView => viewOf(row, this.#stateAfter(row, applied));
                const before = steps.flatMap((step) =>
                    step.before === null ? [] : [this.#view(step.before)]
                );
                const after = steps.flatMap((step) => (step.after === null ? [] : [seen(step.after)]));
                return call.complete(tx, {
                    action,
                    resource: 'hosts',
                    resourceId: single?.before?.site.id ?? null,
                    before: single === undefined ? before : (before[0] ?? null),
                    after: single === undefined ? after : (after[0] ?? null),
                    reply: answer(seen, { 'x-engine-reload': String(reloaded) })
                });
            }
        });
        for (const { before, after } of steps) {
            this.#notify(before, after, call);
        }
        return {
            ...value,
            data: answer((row) => this.#view(row), { 'x-engine-reload': String(outcome.reloaded) }).data
        };
    }

    #notify(before: HostRow | null, after: HostRow | null, call: Call): void {
        this.#context.runInAsyncScope(() =>
            this.#hooks.afterChange(
                before === null ? null : this.#view(before),
                after === null ? null : this.#view(after),
                call
            )
        );
    }

    /** The state that a row will have after the commit. */
    #stateAfter(row: HostRow, applied: boolean): HostState {
        if (applied) {
            return { state: row.site.enabled ? 'applied' : 'disabled', message: null };
        }
        const { state, message } = this.#engine.stateOf({ ...row, site: { ...row.site, enabled: true } });
        return { state: 'pending', message: state === 'pending' ? message : waitsForReload };
    }

    /**
     * Makes a change from the present rows, and again when another change came in between.
     * @param stated - checks the version that the caller named, at each try
     */
    async #attempt<T>(
        ids: readonly number[],
        stated: (row: HostRow) => void,
        make: (rows: readonly HostRow[]) => Promise<T>
    ): Promise<T> {
        for (let left = mostAttempts; ; left -= 1) {
            const rows = this.#found(ids);
            rows.forEach(stated);
            try {
                return await make(rows);
            } catch (error) {
                if (!(error instanceof Moved)) {
                    throw error;
                }
                if (left === 1) {
                    throw fail.VERSION_STALE({
                        version: this.#engine.draft().hosts.get(ids[0] ?? 0)?.version ?? null
                    });
                }
            }
        }
    }

    #found(ids: readonly number[]): readonly HostRow[] {
        const { hosts } = this.#engine.draft();
        const missing = ids.filter((id) => !hosts.has(id));
        if (missing.length > 0) {
            throw fail.NOT_FOUND({ ids: missing }, { message: `There is no host ${missing.join(', ')}` });
        }
        return ids.flatMap((id) => hosts.get(id) ?? []);
    }

    /** Creates a host. It gets its id inside the queue, where no other change can get the same one. */
    async #add(
        body: HostChange,
        call: Call,
        owner: string | null,
        hashes?: ReadonlyMap<string, string>
    ): Promise<Reply<HostView>> {
        const draftRow = await this.#preparation.prepare(null, body, call, {
            id: 0,
            owner,
            ...(hashes === undefined ? {} : { hashes })
        });
        await this.#guard([{ before: null, after: draftRow }], call);
        let row = draftRow;
        const { value } = await this.#engine.change({
            by: authorOf(call),
            plan: (draft) => {
                checkNames(draft, draftRow.site, new Set());
                refuse(checkSite(draftRow.site, this.#preparation.safetyIn(draft)));
                row = { ...draftRow, site: { ...draftRow.site, id: draft.nextHostId() } };
                return { hosts: [{ id: row.site.id, row }] };
            },
            commit: (tx, { applied, reloaded }) => {
                const after = viewOf(row, this.#stateAfter(row, applied));
                return call.complete(tx, {
                    action: 'create',
                    resource: 'hosts',
                    resourceId: row.site.id,
                    before: null,
                    after,
                    reply: reply.created(`/api/hosts/${row.site.id}`, after, {
                        headers: { 'x-engine-reload': String(reloaded) }
                    })
                });
            }
        });
        this.#notify(null, row, call);
        return { ...value, data: this.#view(row) };
    }
}
