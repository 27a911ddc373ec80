/** Hosts that lead to ports of containers, and follow them: a container that is made or started anew may publish at another port. */
import { type Actor, errors, type Host, isFailure, Mutex } from '@portico/sdk';
import { findRows } from '@portico/sdk/db';

import type { ListedContainer } from '../engine/documents.ts';
import type { Inventory } from '../engine/inventory.ts';
import { HostEntity, type HostRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import { nameOf } from '../stacks/planner.ts';
import type { Publishing } from './publishing.ts';

/** Which port a host leads to. */
export interface HostTarget {
    /** Name; null where stack and service say which. */
    readonly container: string | null;
    readonly stack: string | null;
    readonly service: string | null;
    readonly port: number;
    readonly scheme: 'http' | 'https';
}

/** A host that is made. */
export interface NewHost extends HostTarget {
    readonly domain: string;
    readonly aliases: readonly string[];
    readonly ssl: boolean;
    readonly sslMode?: string | undefined;
    /** Where the port is not published, it becomes so on loopback: the container is made again. */
    readonly publish: boolean;
}

/** A host as answers show it. */
export interface HostView extends HostTarget {
    readonly id: number;
    readonly domain: string;
    /** The address that it leads to; null while no container publishes the port. */
    readonly target: string | null;
    /** As the core shows it. */
    readonly host: Host;
}

/** Makes, lists and removes hosts, and keeps them where their containers are. */
export class ContainerHosts {
    readonly #ctx: Ctx;
    readonly #inventory: Inventory;
    readonly #publishing: Publishing;
    readonly #mutex = new Mutex();

    constructor(ctx: Ctx, inventory: Inventory, publishing: Publishing) {
        this.#ctx = ctx;
        this.#inventory = inventory;
        this.#publishing = publishing;
    }

    async list(): Promise<readonly HostView[]> {
        const [rows, hosts] = await Promise.all([
            this.#rows(),
            this.#ctx.hosts.list({ owner: this.#ctx.name })
        ]);
        return rows.flatMap((row) => {
            const host = hosts.find(({ id }) => id === row.id);
            return host === undefined ? [] : [viewOf(row, host)];
        });
    }

    /** Makes a host for an actor, who must be allowed to. @throws NOT_FOUND 40400; IN_USE 40901 where the port is not published, unless `publish` */
    async create(input: NewHost, actor: Actor, signal: AbortSignal): Promise<HostView> {
        if (!actor.can('hosts:write')) {
            throw errors.forbidden('hosts:write');
        }
        await this.#mustExist(input);
        const found =
            (await this.#addressOf(input)) ??
            (input.publish ? await this.#publish(input, actor, signal) : null);
        if (found === null) {
            throw errors.inUse(
                input.container ?? `${input.stack}/${input.service}`,
                `No container that runs publishes port ${input.port}: start it, or send "publish": true to have the port published on 127.0.0.1`
            );
        }
        const { domain, ssl, sslMode } = input;
        const { host } = await this.#ctx.hosts.create(
            {
                domain,
                aliases: [...input.aliases],
                upstream: found,
                ssl,
                ...(sslMode === undefined ? {} : { sslMode })
            },
            actor
        );
        const { container, stack, service, port, scheme } = input;
        const row = { id: host.id, container, stack, service, port, scheme, target: found };
        await this.#ctx.db.write(async (em) => void (await em.upsert(HostEntity, row)));
        return viewOf(row, host);
    }

    /** @throws NOT_FOUND 40400 */
    async remove(id: number, actor: Actor): Promise<HostView> {
        const found = (await this.list()).find((each) => each.id === id);
        if (found === undefined) {
            throw errors.notFound('There is no host of that number that leads to a container');
        }
        await this.#ctx.hosts.remove(id, { as: actor });
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(HostEntity, { id })));
        return found;
    }

    /** Leads each host to where its container publishes now. Hosts that were removed in the core are forgotten. */
    follow(): Promise<void> {
        return this.#mutex.run(async () => {
            const rows = await this.#rows();
            if (rows.length === 0) {
                return;
            }
            const hosts = await this.#ctx.hosts.list({ owner: this.#ctx.name });
            const listed = await this.#inventory.list();
            for (const row of rows) {
                const host = hosts.find(({ id }) => id === row.id);
                await this.#followOne(row, host, addressIn(listed, targetOf(row)));
            }
        });
    }

    async #followOne(row: HostRow, host: Host | undefined, target: string | null): Promise<void> {
        const { id } = row;
        if (host === undefined) {
            await this.#ctx.db.write(async (em) => void (await em.nativeDelete(HostEntity, { id })));
            return;
        }
        if (target !== null && host.upstream !== target) {
            await this.#ctx.hosts.update(id, { upstream: target });
            this.#ctx.log.info('A host follows its container', { host: host.domain, target });
        }
        if (target !== row.target) {
            await this.#ctx.db.write(
                async (em) => void (await em.nativeUpdate(HostEntity, { id }, { target }))
            );
        }
    }

    async #publish(input: NewHost, actor: Actor, signal: AbortSignal): Promise<string | null> {
        await this.#publishing.publish(input, actor, signal);
        return this.#addressOf(input);
    }

    /** @throws NOT_FOUND 40400 */
    async #mustExist({ container, stack, service }: HostTarget): Promise<void> {
        const isThere =
            container === null
                ? (await this.#inventory.list(stack ?? '')).some(
                      ({ Labels: labels }) => labels?.[labelOf.service] === service
                  )
                : (await this.#inventory.container(container)) !== null;
        if (!isThere) {
            throw errors.notFound('There is no such service');
        }
    }

    async #addressOf(target: HostTarget): Promise<string | null> {
        return addressIn(await this.#inventory.list(), target);
    }

    async #rows(): Promise<readonly HostRow[]> {
        return this.#ctx.db.read((em) => findRows(em, HostEntity, {}, { orderBy: { id: 'asc' } }));
    }
}

/** Whether a failure says that there is no engine now: what follows it waits. */
export const isEngineAway = (error: unknown): boolean =>
    isFailure(error) && [50302, 50350].includes(error.code);

const targetOf = ({ container, stack, service, port, scheme }: HostRow): HostTarget => ({
    container,
    stack,
    service,
    port,
    scheme: scheme === 'https' ? 'https' : 'http'
});

/** The address by which this machine reaches a port of the first container that runs and publishes it. */
function addressIn(listed: readonly ListedContainer[], target: HostTarget): string | null {
    const { container, stack, service, port, scheme } = target;
    const fits = ({ Names: names, Id: id, Labels: labels }: ListedContainer): boolean =>
        container === null
            ? labels?.[labelOf.project] === stack && labels?.[labelOf.service] === service
            : names.includes(`/${container}`) || id === container;
    const addresses = listed
        .filter((each) => each.State === 'running' && fits(each))
        .sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
        .flatMap(({ Ports: ports }) => ports ?? [])
        .filter(
            ({ PrivatePort, PublicPort, Type }) =>
                PrivatePort === port && Type === 'tcp' && (PublicPort ?? 0) > 0
        )
        .map(({ IP = '', PublicPort }) => `${reachable(IP)}:${PublicPort}`);
    const [first] = addresses;
    return first === undefined ? null : scheme === 'https' ? `https://${first}` : first;
}

/** An address that stands for all of the machine's is reached by loopback. */
const reachable = (ip: string): string =>
    ip === '' || ip === '0.0.0.0' || ip === '::' ? '127.0.0.1' : ip.includes(':') ? `[${ip}]` : ip;

const viewOf = (row: HostRow, host: Host): HostView => ({
    ...targetOf(row),
    id: row.id,
    domain: host.domain,
    target: row.target,
    host
});
