/** Changes of sites that are there. What PHP refuses changes nothing; what does not come up is taken back. */
import type { Configurations } from '../config/configurations.ts';
import { changed, type DirectiveValues } from '../config/directives.ts';
import { checkPool, type Pool } from '../config/pool.ts';
import { definedOf } from '../defined.ts';
import type { SslMode } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Masters } from '../fpm/masters.ts';
import type { Ctx } from '../settings.ts';
import type { Slots } from '../switching/slots.ts';
import type { Releases } from '../versions/releases.ts';
import { sealed } from './creation/creation.ts';
import { changedEnv, type EnvInput } from './creation/input.ts';
import type { Accounts } from './machine/accounts.ts';
import type { SiteHosts } from './machine/hosts.ts';
import { checkExtraPaths, checkRootFolder } from './machine/paths.ts';
import type { Site } from './site.ts';
import type { SiteChange, Store } from './store.ts';

/** What a change of a site may say; what is left out stays. */
export interface SiteInput {
    readonly domain?: string | undefined;
    readonly aliases?: readonly string[] | undefined;
    readonly root?: string | undefined;
    readonly ssl?: boolean | undefined;
    readonly sslMode?: SslMode | undefined;
    readonly extraPaths?: readonly string[] | undefined;
    readonly env?: EnvInput | undefined;
}

/** What changes of sites work with. */
export interface ChangesParts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly releases: Releases;
    readonly accounts: Accounts;
    readonly configurations: Configurations;
    readonly masters: Masters;
    readonly hosts: SiteHosts;
    readonly slots: Slots;
}

/** Changes sites. The caller holds the lock of the site. */
export class Changes {
    readonly #parts: ChangesParts;

    constructor(parts: ChangesParts) {
        this.#parts = parts;
    }

    /** Changes what a site is. @throws VALIDATION_FAILED 40001, PHP_REJECTED 42250, SITE_DOWN 50351 */
    async update(site: Site, input: SiteInput): Promise<Site> {
        const { ctx, configurations, hosts, store } = this.#parts;
        const { domain, aliases, root, ssl, sslMode, extraPaths, env } = input;
        if (root !== undefined && root !== site.root) {
            await checkRootFolder(ctx, site, root);
        }
        if (extraPaths !== undefined) {
            await checkExtraPaths(ctx, extraPaths, await store.all());
        }
        const newEnv = env === undefined ? null : changedEnv(await configurations.environment(site), env);
        const change: SiteChange = {
            ...(domain === undefined ? {} : { domain }),
            ...(aliases === undefined ? {} : { aliases: JSON.stringify(aliases) }),
            ...(root === undefined ? {} : { root }),
            ...(ssl === undefined ? {} : { ssl }),
            ...(sslMode === undefined ? {} : { sslMode }),
            ...(extraPaths === undefined ? {} : { extraPaths: JSON.stringify(extraPaths) }),
            ...(newEnv === null
                ? {}
                : { env: await sealed(ctx, newEnv), envNames: JSON.stringify(Object.keys(newEnv)) })
        };
        const changesHost = [domain, aliases, root, ssl, sslMode].some((each) => each !== undefined);
        const next: Site = { ...site, ...definedOf({ domain, aliases, root, ssl, sslMode }) };
        const hostId = changesHost ? await hosts.update(next) : site.hostId;
        try {
            return extraPaths === undefined && newEnv === null
                ? await store.change(site.id, { ...change, hostId })
                : await this.#apply(site, { ...change, hostId });
        } catch (error) {
            if (changesHost) {
                await hosts.update({ ...site, hostId });
            }
            throw error;
        }
    }

    /** Sets directives; null takes one back to its default. */
    async setDirectives(
        site: Site,
        values: Readonly<Record<string, string | number | boolean | null>>
    ): Promise<Site> {
        return this.#apply(site, { settings: JSON.stringify(changed(site.values, values)) });
    }

    /** Sets the pool. */
    async setPool(site: Site, change: Partial<Pool>): Promise<Site> {
        const pool = { ...site.pool, ...change };
        checkPool(pool);
        const changed = await this.#apply(site, { pool: JSON.stringify(pool) });
        if (pool.requestSeconds !== site.pool.requestSeconds) {
            await this.#parts.hosts.update(changed);
        }
        return changed;
    }

    /** Lets PHP-FPM try a configuration that is not saved. */
    async check(
        site: Site,
        { values = {}, pool = {} }: { readonly values?: DirectiveInput; readonly pool?: Partial<Pool> }
    ): Promise<{ readonly ok: boolean; readonly output: string }> {
        const { accounts, configurations, releases } = this.#parts;
        const next: Site = {
            ...site,
            values: changed(site.values, values) as DirectiveValues,
            pool: { ...site.pool, ...pool }
        };
        checkPool(next.pool);
        return configurations.check({
            site: next,
            slot: site.slot,
            release: await releases.get(site.release),
            revision: site.revision,
            account: await accounts.own(site.account, site.token)
        });
    }

    async start(site: Site): Promise<void> {
        await this.#place(site);
        const { masters, releases } = this.#parts;
        await masters.put(site, site.slot, await releases.get(site.release));
        await masters.start(site, site.slot);
        await masters.waitUp(site, site.slot, site.revision);
    }

    async stop(site: Site): Promise<void> {
        await this.#parts.masters.stop(site, site.slot);
    }

    async restart(site: Site): Promise<void> {
        await this.#place(site);
        const { masters, releases } = this.#parts;
        await masters.put(site, site.slot, await releases.get(site.release));
        await masters.restart(site, site.slot);
        await masters.waitUp(site, site.slot, site.revision);
    }

    /** Replaces PHP-FPM by one that has read its configuration anew. @throws SITE_DOWN 50351 when it does not run */
    async reload(site: Site): Promise<Site> {
        if (!(await this.isRunning(site))) {
            throw fail.SITE_DOWN({ why: 'it does not run' });
        }
        return this.#apply(site, {});
    }

    /** Whether the master that serves a site runs. */
    async isRunning(site: Site): Promise<boolean> {
        return (await this.#parts.masters.info(site, site.slot))?.state === 'running';
    }

    /** Puts a changed configuration into effect, and the change into the database. What PHP-FPM refuses changes nothing. */
    async #apply(site: Site, change: SiteChange): Promise<Site> {
        const { slots, store } = this.#parts;
        const next = withChange(site, change);
        if (await this.isRunning(site)) {
            return slots.replace(site, next, change);
        }
        const revision = site.revision + 1;
        await this.#place({ ...next, revision });
        // A start places the configuration again: it is that of the database, also when this is cut here.
        return store.change(site.id, { ...change, revision });
    }

    async #place(site: Site): Promise<void> {
        const { accounts, configurations, releases } = this.#parts;
        const account = await accounts.own(site.account, site.token);
        const release = await releases.get(site.release);
        await configurations.place({ site, slot: site.slot, release, revision: site.revision, account });
    }
}

/** Values of directives as a request gives them. */
export type DirectiveInput = Readonly<Record<string, string | number | boolean | null>>;

function withChange(site: Site, { settings, pool, extraPaths, env }: SiteChange): Site {
    return {
        ...site,
        ...(settings === undefined ? {} : { values: JSON.parse(settings) as DirectiveValues }),
        ...(pool === undefined ? {} : { pool: JSON.parse(pool) as Pool }),
        ...(extraPaths === undefined ? {} : { extraPaths: JSON.parse(extraPaths) as readonly string[] }),
        ...(env === undefined ? {} : { env })
    };
}
