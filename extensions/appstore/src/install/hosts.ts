/** The host of an app: made when it has a domain, changed and removed with it. */
import type { Actor } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { addressOf, type Layout } from './planning/layout.ts';

/** Keeps hosts of apps. */
export class AppHosts {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Makes the host of a new app. It is off until the app runs. Null where there is no domain. @throws CONFLICT 40900 for a taken domain */
    async create(layout: Layout, actor: Actor, enabled: boolean): Promise<number | null> {
        const { domain, ssl, sslMode } = layout;
        if (domain === null) {
            return null;
        }
        const { host } = await this.#ctx.hosts.create(
            {
                ...{ domain, upstream: addressOf(layout), enabled, ssl },
                ...(sslMode === null ? {} : { sslMode })
            },
            actor
        );
        return host.id;
    }

    /** Turns the host of an app on. */
    async enable(id: number | null): Promise<void> {
        if (id !== null) {
            await this.#ctx.hosts.update(id, { enabled: true });
        }
    }

    /** Makes the host of an installed app follow its domain. @returns its id now */
    async follow(id: number | null, before: Layout, after: Layout, actor: Actor): Promise<number | null> {
        if (id === null) {
            return this.create(after, actor, true);
        }
        if (before.domain === after.domain) {
            return id;
        }
        if (after.domain === null) {
            await this.remove(id);
            return null;
        }
        await this.#ctx.hosts.update(id, { domain: after.domain }, { as: actor });
        return id;
    }

    /** The plugin's own host of a domain; null where there is none. */
    async own(domain: string | null): Promise<number | null> {
        const hosts = domain === null ? [] : await this.#ctx.hosts.list({ owner: this.#ctx.name, domain });
        return hosts[0]?.id ?? null;
    }

    /** Removes the host, if it is still there. */
    async remove(id: number | null): Promise<void> {
        if (id !== null && (await this.#ctx.hosts.list()).some((host) => host.id === id)) {
            await this.#ctx.hosts.remove(id);
        }
    }
}
