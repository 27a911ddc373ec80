/** Prepares a change of a host before it enters the queue: hooks, rules, rights and password hashes. */
import { isDeepStrictEqual } from 'node:util';

import { hash } from '@node-rs/bcrypt';

import type { Draft, Engine, HostRow } from '../../engine/change.ts';
import type { Site } from '../../engine/site.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import { invalid } from '../../platform/errors.ts';
import { faultsOf } from '../../platform/validation.ts';
import { build, type Built } from './input/build.ts';
import { hideSecrets } from './input/hidden.ts';
import { Faults } from './input/normalise.ts';
import { checkKeptCredentials } from './rules/kept-credentials.ts';
import type { Readable } from './rules/paths.ts';
import { mayChange, refuse } from './rules/refusals.ts';
import { checkSite, type SafetyContext } from './rules/safety.ts';
import { type HostChange, hostCreate, hostUpdate } from './schema/bodies.ts';
import type { HostView } from './schema/view.ts';
import { viewOf } from './view.ts';

/** The hooks around a change of a host. They are called outside of every lock and transaction. */
export interface HostHooks {
    /** A waterfall: each tap may return another body. The body has no passwords, and no values of headers that are credentials. */
    beforeSave(before: HostView | null, body: HostChange, call: Call): Promise<HostChange>;
    /** Refuses a change. `after` is null for a removal. @throws REFUSED_BY_PLUGIN 40920 */
    guard(before: HostView | null, after: HostView | null, call: Call): Promise<void>;
    /** Tells of a change that is committed. It runs in an async context of its own and must not throw. */
    afterChange(before: HostView | null, after: HostView | null, call: Call): void;
}

/** What a {@link HostPreparation} works with. */
export interface PreparationOptions {
    readonly engine: Engine;
    readonly hooks: HostHooks;
    readonly clock: Clock;
    readonly readable: Readable;
    /** What every site is held against. Settings and certificates come from the draft. */
    readonly safety: Omit<SafetyContext, 'settings' | 'certificates' | 'addresses'> & {
        addresses(): readonly string[];
    };
}

/** What a change is made of, beside its body. */
export interface PreparationGround {
    /** 0 for a host that has no id yet. */
    readonly id: number;
    /** Password hashes by user name. Default: those of the host. */
    readonly hashes?: ReadonlyMap<string, string>;
    /** The plugin that owns a new host; null for people. */
    readonly owner: string | null;
    /** Hashes no password, because the row is only tried. */
    readonly dry?: boolean;
}

/** bcrypt rounds as a power of two (OWASP ASVS 5.0, appendix C: at least 10). The engine computes them at the first request of each client. */
const hashCost = 10;
/** A text in the form of a hash, for a host that is only tried: a caller who may only read must not cost the time of real hashing. */
const standIn = `$2b$${hashCost}$${'.'.repeat(53)}`;
/** Turns what a client sends into the row that a host becomes. */
export class HostPreparation {
    readonly #options: PreparationOptions;
    readonly #engine: Engine;

    constructor(options: PreparationOptions) {
        this.#options = options;
        this.#engine = options.engine;
    }

    /** What a site is held against when it becomes part of this draft. */
    safetyIn(draft: Draft): SafetyContext {
        return {
            ...this.#options.safety,
            addresses: this.#options.safety.addresses(),
            settings: draft.settings,
            certificates: draft.certificates
        };
    }

    /**
     * Runs a body through the hooks, the rules of its fields and the safety rules.
     * @returns the row that the host would become; `before` itself when nothing changes
     * @throws VALIDATION_FAILED; FORBIDDEN and STEP_UP_REQUIRED (`hosts:unsafe`)
     */
    async prepare(
        before: HostRow | null,
        sent: HostChange,
        call: Call,
        ground: PreparationGround
    ): Promise<HostRow> {
        const body = await this.#throughHook(before, sent, call);
        const faults = new Faults();
        const built = build(
            body,
            { id: ground.id, before, hashes: ground.hashes ?? hashesOf(before?.site) },
            faults
        );
        mayChange(call, before?.site ?? null, built.site, { dry: ground.dry === true });
        const known = new Set(faults.list.map(({ path }) => path));
        refuse([
            ...faults.list,
            ...checkKeptCredentials(call, body, before?.site ?? null, built.site),
            ...checkSite(built.site, this.safetyIn(this.#engine.draft())).filter(
                ({ path }) => !known.has(path)
            )
        ]);
        await this.#checkReadable(before, built.site);
        const now = new Date(this.#options.clock.now());
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

    /** Runs the body through the hook without its passwords and credentials, and puts them back where they were afterwards. */
    async #throughHook(before: HostRow | null, sent: HostChange, call: Call): Promise<HostChange> {
        const { shown, restore } = hideSecrets(sent);
        const returned = await this.#options.hooks.beforeSave(
            before === null ? null : viewOf(before, this.#engine.stateOf(before)),
            shown,
            call
        );
        if (returned === shown) {
            return sent;
        }
        refuse(faultsOf(before === null ? hostCreate : hostUpdate, returned));
        return restore(returned);
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
}

/** The password hashes of a site by user name. */
export function hashesOf(site: Site | undefined): ReadonlyMap<string, string> {
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

/** A host as a body for PUT, without its names. */
export function bodyOf(site: Site): HostChange {
    const { id: _id, domain: _domain, aliases: _aliases, access, ...rest } = site;
    return {
        ...rest,
        access: { ...access, basicAuth: access.basicAuth.map(({ username }) => ({ username })) }
    } as HostChange;
}
