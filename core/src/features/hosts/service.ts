/**
 * Hosts: what may be changed, by whom, and how a change gets through the hooks and the engine's queue into the rows. A change is made of a
 * host as it is; when another one was faster, it is made again of what that left, unless the caller named the version that was meant.
 */
import { AsyncResource } from 'node:async_hooks';
import { isDeepStrictEqual } from 'node:util';

import { hash, verify } from '@node-rs/bcrypt';
import { type Reply, reply } from '@portico/sdk';
import type Joi from 'joi';

import type { Author, Draft, Engine, HostRow, HostState, Plan, WaitsForReload } from '../../engine/change.ts';
import type { EngineConfig } from '../../engine/port.ts';
import type { Site } from '../../engine/site.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import { fail, invalid } from '../../platform/errors.ts';
import { admission } from './checks/access-check.ts';
import type { CheckItem, Checklist } from './checks/checklist.ts';
import { build, type Built } from './input/build.ts';
import { Faults } from './input/normalise.ts';
import type { HostList, HostPage } from './list.ts';
import type { Readable } from './rules/paths.ts';
import { checkNames, checkVersion, mayChange, refuse } from './rules/refusals.ts';
import { checkSite, type SafetyContext } from './rules/safety.ts';
import {
    type AccessCheck,
    type AccessVerdict,
    type HostBatch,
    type HostChange,
    hostCreate,
    type HostQuery,
    hostUpdate,
    type HostView
} from './schema.ts';
import { viewOf } from './view.ts';

const waitsForReload: WaitsForReload = 'Waits for a reload';

/** What plugins hang on: called outside of every lock and transaction. */
export interface HostHooks {
    /** Waterfall: each tap may return another body. Passwords are not in it. */
    beforeSave(before: HostView | null, body: HostChange, call: Call): Promise<HostChange>;
    /** Throws 40920 to refuse. `after` is null for a removal. */
    guard(before: HostView | null, after: HostView | null, call: Call): Promise<void>;
    /** After the commit, in an async context of its own; must not throw. */
    afterChange(before: HostView | null, after: HostView | null, call: Call): void;
}

export interface HostsOptions {
    readonly engine: Engine;
    readonly list: HostList;
    readonly hooks: HostHooks;
    readonly clock: Clock;
    readonly readable: Readable;
    readonly checklist: Checklist;
    /** What every site is held against; settings and certificates come from the draft. */
    readonly safety: Omit<SafetyContext, 'settings' | 'certificates' | 'addresses'> & {
        addresses(): readonly string[];
    };
    /** The configuration with what not everybody may see masked. */
    mask(config: EngineConfig, site: Site): EngineConfig;
}

/** bcrypt rounds as a power of two (OWASP ASVS 5.0, appendix C: at least 10). The engine pays them for each first request of a client. */
const hashCost = 10;
/** A hash in form only, for a host that is tried: whoever only reads must not keep the processor busy with real ones. */
const standIn = `$2b$${hashCost}$${'.'.repeat(53)}`;
/** So often a change without If-Match is made again when others were faster. */
const mostAttempts = 16;

/** The host that a change was made of is not the present one any more. */
class Moved extends Error {}

interface Step {
    readonly before: HostRow | null;
    readonly after: HostRow | null;
}

/** Answers of writes carry `X-Engine-Reload`. Every write may fail as 42200 or 50301, and then nothing changed. */
export class Hosts {
    readonly #options: HostsOptions;
    readonly #engine: Engine;
    readonly #hooks: HostHooks;
    readonly #clock: Clock;
    readonly #context = new AsyncResource('HostChange');

    constructor(options: HostsOptions) {
        this.#options = options;
        this.#engine = options.engine;
        this.#hooks = options.hooks;
        this.#clock = options.clock;
    }

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
            (row) => checkVersion(row, call.ifMatch, body.version),
            async ([before]) => {
                const row = before as HostRow;
                const after = await this.#prepare(row, body, call, { id, owner: row.owner });
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
            (row) => checkVersion(row, call.ifMatch, undefined),
            async ([before]) => {
                const row = before as HostRow;
                await this.#guard([{ before: row, after: null }], call);
                return this.#run<null>([{ before: row, after: null }], call, 'delete', (_seen, headers) =>
                    reply.with(null, { headers })
                );
            }
        );
    }

    async clone(id: number, domain: string, call: Call): Promise<Reply<HostView>> {
        const { site, tags, notes } = this.#existing(id);
        const body: HostChange = { ...writable(site), domain, tags, notes };
        return this.#add(body, call, call.actor.plugin, hashesOf(site));
    }

    /** All or nothing, in one apply. @throws NOT_FOUND with `data.ids` */
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
                for (const before of rows) {
                    steps.push({
                        before,
                        after:
                            action === 'delete'
                                ? null
                                : await this.#prepare(before, { enabled: action === 'enable' }, call, {
                                      id: before.site.id,
                                      owner: before.owner
                                  })
                    });
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

    /** The errors of `create`, and whether it would reload the engine. Changes nothing. */
    async validate(body: HostChange, call: Call): Promise<{ readonly reload: boolean }> {
        const row = await this.#prepare(null, body, call, { id: 0, owner: null, dry: true });
        await this.#guard([{ before: null, after: row }], call);
        const { reloaded } = await this.#engine.tryChange({
            plan: (draft) => {
                checkNames(draft, row.site, new Set());
                refuse(checkSite(row.site, this.#safetyOf(draft)));
                const id = draft.nextHostId();
                return { hosts: [{ id, row: { ...row, site: { ...row.site, id } } }] };
            }
        });
        return { reload: reloaded };
    }

    preview(id: number, call: Call): EngineConfig {
        const { site } = this.#existing(id);
        const config = this.#engine.preview(site);
        return call.actor.can('engine:secrets') && call.actor.fresh
            ? config
            : this.#options.mask(config, site);
    }

    async check(id: number, call: Call): Promise<readonly CheckItem[]> {
        this.#existing(id);
        return this.#options.checklist(id, call.signal);
    }

    /** Who gets in. A password is compared only for somebody who may set it, or this would be a place to guess it. @throws NOT_FOUND, FORBIDDEN */
    async admission(id: number, request: AccessCheck, call: Call): Promise<AccessVerdict> {
        const { site } = this.#existing(id);
        if (request.password !== undefined && !call.actor.can('hosts:write')) {
            throw fail.FORBIDDEN({ permission: 'hosts:write' });
        }
        return admission(site, request, verify);
    }

    /** Judges a row that comes in another way (restore, import) by the rules of every other. @throws VALIDATION_FAILED, FORBIDDEN */
    vet(call: Call, before: HostRow | null, after: HostRow | null): void {
        if (after !== null) {
            mayChange(call, before?.site ?? null, after.site);
            refuse(checkSite(after.site, this.#safetyOf(this.#engine.draft())));
        }
    }

    #safetyOf(draft: Draft): SafetyContext {
        return {
            ...this.#options.safety,
            addresses: this.#options.safety.addresses(),
            settings: draft.settings,
            certificates: draft.certificates
        };
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

    /** Stops 4 and 5: what the host would become, with everything that can be known before the queue. */
    async #prepare(
        before: HostRow | null,
        sent: HostChange,
        call: Call,
        ground: {
            readonly id: number;
            readonly hashes?: ReadonlyMap<string, string>;
            readonly owner: string | null;
            readonly dry?: boolean;
        }
    ): Promise<HostRow> {
        const body = await this.#throughHook(before, sent, call);
        const faults = new Faults();
        const built = build(
            body,
            { id: ground.id, before, hashes: ground.hashes ?? hashesOf(before?.site) },
            faults
        );
        mayChange(call, before?.site ?? null, built.site);
        const known = new Set(faults.list.map(({ path }) => path));
        refuse([
            ...faults.list,
            ...checkSite(built.site, this.#safetyOf(this.#engine.draft())).filter(
                ({ path }) => !known.has(path)
            )
        ]);
        await this.#checkReadable(before, built.site);
        const now = new Date(this.#clock.now());
        const row: HostRow = {
            site: await withHashes(
                built,
                ground.dry === true ? async () => standIn : (password) => hash(password, hashCost)
            ),
            version: (before?.version ?? 0) + 1,
            owner: before === null ? ground.owner : before.owner,
            tags: built.tags,
            notes: built.notes,
            createdAt: before?.createdAt ?? now,
            updatedAt: now
        };
        return before !== null && isDeepStrictEqual(contentOf(before), contentOf(row)) ? before : row;
    }

    /** Passwords stay out of plugins' hands, and find their users again behind them. */
    async #throughHook(before: HostRow | null, sent: HostChange, call: Call): Promise<HostChange> {
        const secrets = new Map(
            sent.access?.basicAuth?.flatMap(({ username, password }) =>
                username === undefined || password === undefined ? [] : [[username, password] as const]
            )
        );
        const shown: HostChange =
            secrets.size === 0 || sent.access === null || sent.access === undefined
                ? sent
                : {
                      ...sent,
                      access: {
                          ...sent.access,
                          basicAuth: sent.access.basicAuth?.map(({ username }) => ({ username }))
                      }
                  };
        const returned = await this.#hooks.beforeSave(
            before === null ? null : this.#view(before),
            shown,
            call
        );
        if (returned === shown) {
            return sent;
        }
        const schema = (before === null ? hostCreate : hostUpdate) as unknown as Joi.Schema;
        const { error } = schema.validate(returned, {
            abortEarly: false,
            convert: false,
            noDefaults: true,
            errors: { wrap: { label: false } }
        });
        refuse(error?.details.map(({ path, message }) => ({ path: path.join('.'), message })) ?? []);
        const { access } = returned;
        return access === undefined || access === null || access.basicAuth === undefined
            ? returned
            : {
                  ...returned,
                  access: {
                      ...access,
                      basicAuth: access.basicAuth.map((entry) => ({
                          ...entry,
                          password: entry.password ?? secrets.get(entry.username ?? '')
                      }))
                  }
              };
    }

    async #checkReadable(before: HostRow | null, site: Site): Promise<void> {
        const root = site.static?.root;
        if (root === undefined || root === before?.site.static?.root) {
            return;
        }
        const fault = await this.#options.readable(root);
        if (fault !== null) {
            throw invalid({ path: 'static.root', message: `static.root ${fault}` });
        }
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

    /** Stop 6: what can only be decided against everything that is ahead in the queue. */
    #plan(draft: Draft, steps: readonly Step[]): Plan {
        const going = new Set(steps.flatMap(({ before }) => (before === null ? [] : [before.site.id])));
        for (const { before, after } of steps) {
            if (before !== null && draft.hosts.get(before.site.id)?.version !== before.version) {
                throw new Moved();
            }
            if (after !== null) {
                checkNames(draft, after.site, going);
                refuse(checkSite(after.site, this.#safetyOf(draft)));
            }
        }
        return {
            hosts: steps.map(({ before, after }) => ({ id: (after ?? before)?.site.id ?? 0, row: after }))
        };
    }

    /** Stops 6 and 7. `answer` is asked twice: for the record, and after the commit, when the queue has moved its rows on. */
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

    /** What the state will be once the queue has moved its rows on; an engine that waits says for what. */
    #stateAfter(row: HostRow, applied: boolean): HostState {
        if (applied) {
            return { state: row.site.enabled ? 'applied' : 'disabled', message: null };
        }
        const { state, message } = this.#engine.stateOf({ ...row, site: { ...row.site, enabled: true } });
        return { state: 'pending', message: state === 'pending' ? message : waitsForReload };
    }

    /** Makes a change of hosts as they are; again if another one came in between, but never over a version that the caller named. */
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

    /** A new host gets its id in the queue, where nobody else can get the same. */
    async #add(
        body: HostChange,
        call: Call,
        owner: string | null,
        hashes?: ReadonlyMap<string, string>
    ): Promise<Reply<HostView>> {
        const draftRow = await this.#prepare(null, body, call, {
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
                refuse(checkSite(draftRow.site, this.#safetyOf(draft)));
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

function hashesOf(site: Site | undefined): ReadonlyMap<string, string> {
    return new Map(site?.access.basicAuth.map(({ username, hash: known }) => [username, known]));
}

async function withHashes(
    { site, passwords }: Built,
    hashed: (password: string) => Promise<string>
): Promise<Site> {
    if (passwords.size === 0) {
        return site;
    }
    const hashes = new Map<string, string>();
    for (const [username, password] of passwords) {
        hashes.set(username, await hashed(password));
    }
    return {
        ...site,
        access: {
            ...site.access,
            basicAuth: site.access.basicAuth.map((entry) => ({
                ...entry,
                hash: hashes.get(entry.username) ?? entry.hash
            }))
        }
    };
}

function contentOf({ site, tags, notes }: HostRow): unknown {
    return { site, tags, notes };
}

/** A host as it could be sent again, without its names. */
function writable(site: Site): HostChange {
    const { id: _id, domain: _domain, aliases: _aliases, access, ...rest } = site;
    return {
        ...rest,
        access: { ...access, basicAuth: access.basicAuth.map(({ username }) => ({ username })) }
    } as HostChange;
}

function authorOf(call: Call): Author {
    return {
        id: call.actor.id,
        username: call.actor.username,
        tokenId: call.actor.tokenId,
        plugin: call.actor.plugin,
        requestId: call.id
    };
}
