/** The hosts of sites in the proxy engine. */
import { type Host, isFailure } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';
import { linkPath, type Site, socketPath } from '../site.ts';

/** What of a site its host shows. */
type HostFields = Pick<Site, 'domain' | 'aliases' | 'ssl' | 'sslMode' | 'root' | 'folder'>;

/** A slot and its share of the requests. */
export interface Share {
    readonly slot: number;
    /** 1 to 1,000. */
    readonly weight: number;
}

/** Where a host of the type `php` sends its requests. */
type Upstreams = readonly { readonly address: string; readonly weight: number }[];

/** The engine waits a little longer than PHP-FPM lets a request last. */
const graceSeconds = 5;

/** Makes, changes and removes the hosts of sites. */
export class SiteHosts {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Makes the host of a site, and gives its number. */
    async create(site: Site): Promise<number> {
        const { domain, ...fields } = hostFields(site);
        // An import of the panel may have brought the host before its site.
        const [known] = await this.#ctx.hosts.list({ owner: this.#ctx.name, domain });
        if (known !== undefined && !(await this.#isUsed(known))) {
            return this.update({ ...site, hostId: known.id });
        }
        const { host } = await this.#ctx.hosts.create({
            domain,
            ...fields,
            type: 'php',
            php: php(site),
            timeouts: { readSeconds: site.pool.requestSeconds + graceSeconds }
        });
        return host.id;
    }

    /** Whether another site has the sockets of a host. */
    async #isUsed({ php: content }: Host): Promise<boolean> {
        const { upstreams = [] } = (content ?? {}) as { upstreams?: Upstreams };
        const found = await Promise.all(
            upstreams.map(({ address: text }) => {
                const path = text.slice('unix/'.length);
                const at = path.lastIndexOf('/');
                return this.#ctx
                    .files(path.slice(0, at))
                    .stat(path.slice(at + 1))
                    .then(
                        () => true,
                        () => false
                    );
            })
        );
        return found.includes(true);
    }

    /** Changes the host of a site to these fields; makes it again when an admin removed it. Gives its number. */
    async update(site: Site): Promise<number> {
        const host = await this.find(site);
        if (host === null) {
            return this.create(site);
        }
        await this.#ctx.hosts.update(host.id, {
            ...hostFields(site),
            php: php(site),
            timeouts: { readSeconds: site.pool.requestSeconds + graceSeconds }
        });
        return host.id;
    }

    /** Spreads the requests of a site over its slots. */
    async spread(site: Site, shares: readonly Share[]): Promise<void> {
        await this.#send(
            site,
            shares.map(({ slot, weight }) => ({ address: `unix/${socketPath(site, slot)}`, weight }))
        );
    }

    /** Lets all requests of a site go to the slot that its link names. */
    async gather(site: Site): Promise<void> {
        await this.#send(site, undefined);
    }

    async #send(site: Site, upstreams: Upstreams | undefined): Promise<void> {
        const host = await this.find(site);
        if (host !== null) {
            await this.#ctx.hosts.update(host.id, { php: php(site, upstreams) });
        }
    }

    /** The host of a site, by its number, or by its sockets where that was not written down any more. */
    async find(site: Site): Promise<Host | null> {
        const sockets = [linkPath(site), socketPath(site, 0), socketPath(site, 1)].map(
            (path) => `unix/${path}`
        );
        const all = await this.#ctx.hosts.list({ owner: this.#ctx.name });
        return (
            all.find(({ id }) => id === site.hostId) ??
            all.find(({ php: content }) => {
                const { upstreams = [] } = (content ?? {}) as { upstreams?: Upstreams };
                return upstreams.some((each) => sockets.includes(each.address));
            }) ??
            null
        );
    }

    /** Removes the host of a site. One that is gone is no error. */
    async remove(site: Site): Promise<void> {
        const host = await this.find(site);
        if (host === null) {
            return;
        }
        await this.#ctx.hosts.remove(host.id).catch((error: unknown) => {
            if (!isFailure(error) || error.code !== 40400) {
                throw error;
            }
        });
    }
}

function hostFields({ domain, aliases, ssl, sslMode }: HostFields) {
    return { domain, aliases, ssl, sslMode };
}

function php(site: Site, upstreams: Upstreams = [{ address: `unix/${linkPath(site)}`, weight: 1 }]) {
    return { root: `${site.folder}/${site.root}`, upstreams };
}
