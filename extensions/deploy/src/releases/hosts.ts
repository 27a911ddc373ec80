/** The host of a project in the proxy engine. */
import { type Host, isFailure } from '@portico/sdk';

import type { Project } from '../deployments/store.ts';
import type { Ctx } from '../settings.ts';
import type { Folders } from './folders.ts';

/** An address and its share of the requests. */
export interface Share {
    readonly port: number;
    readonly weight: number;
}

/** What a host leads to: files of the link `current`, or programs. */
export type Target =
    { readonly runtime: 'static' } | { readonly runtime: 'process'; readonly shares: readonly Share[] };

/** Makes, changes and removes hosts of projects. */
export class Hosts {
    readonly #ctx: Ctx;
    readonly #folders: Folders;

    constructor(ctx: Ctx, folders: Folders) {
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** The host of a project; null where it has none, or an admin removed it. */
    async find({ hostId, config }: Project): Promise<Host | null> {
        const all = await this.#ctx.hosts.list({ owner: this.#ctx.name });
        return (
            all.find(({ id }) => id === hostId) ??
            // Made right before the panel was killed, or brought by an import.
            all.find(({ domain }) => domain === config.host?.domain.toLowerCase()) ??
            null
        );
    }

    /** Lets the host of a project lead to a target; makes it where it is missing. Resolves with its number, null for a project without a host. */
    async lead(project: Project, target: Target): Promise<number | null> {
        const { host } = project.config;
        if (host === null) {
            return null;
        }
        const found = await this.find(project);
        const fields = this.#fields(project, target);
        const { domain, aliases, ssl, sslMode } = host;
        if (found === null) {
            const made = await this.#ctx.hosts.create({ domain, aliases, ssl, sslMode, ...fields });
            return made.host.id;
        }
        await this.#ctx.hosts.update(found.id, fields);
        return found.id;
    }

    /** Gives the host the domains of its project. */
    async rename(project: Project): Promise<void> {
        const { host } = project.config;
        const found = await this.find(project);
        if (found === null) {
            return;
        }
        if (host === null) {
            await this.remove(project);
            return;
        }
        const { domain, aliases, ssl, sslMode } = host;
        await this.#ctx.hosts.update(found.id, { domain, aliases, ssl, sslMode });
    }

    /** Switches the host of a stopped project off, and on again. */
    async enable(project: Project, enabled: boolean): Promise<void> {
        const found = await this.find(project);
        if (found !== null && found.enabled !== enabled) {
            await this.#ctx.hosts.update(found.id, { enabled });
        }
    }

    /** Removes the host of a project. One that is gone is no error. */
    async remove(project: Project): Promise<void> {
        const found = await this.find(project);
        if (found !== null) {
            await this.#ctx.hosts.remove(found.id).catch((error: unknown) => {
                if (!isFailure(error) || error.code !== 40400) {
                    throw error;
                }
            });
        }
    }

    /** What the host of a project leads to now: ports of programs, or null for files and for no host. */
    async ports(project: Project): Promise<readonly number[] | null> {
        const found = await this.find(project);
        if (found === null || found['type'] !== 'proxy') {
            return null;
        }
        const upstreams = (found['upstreams'] ?? []) as readonly { readonly address: string }[];
        return upstreams.map(({ address }) => Number(address.split(':').at(-1)));
    }

    #fields(project: Project, target: Target): Readonly<Record<string, unknown>> {
        if (target.runtime === 'static') {
            const root = this.#folders.absolute(`projects/${project.id}/current`);
            return { type: 'static', static: { root }, enabled: true };
        }
        const upstreams = target.shares.map(({ port, weight }) => ({ address: `127.0.0.1:${port}`, weight }));
        return {
            type: 'proxy',
            upstreams,
            loadBalancing: upstreams.length > 1 ? { policy: 'weighted' } : null,
            enabled: true
        };
    }
}
