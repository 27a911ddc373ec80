/** The panel's services as plugins' hosts need them: one adapter for each port, made by the composition root. */
import type { Certificate, Host, Reply } from '@portico/sdk';

import type { EngineService } from '../engine/service.ts';
import type { Certificates } from '../features/certificates/service.ts';
import type { Hosts } from '../features/hosts/service.ts';
import type { Logger } from '../platform/log.ts';
import { contains, forbids, parseAddress, parseRange, type Range } from '../platform/outbound/addresses.ts';
import { createOutbound } from '../platform/outbound/client.ts';
import type { CertificatesPort, HostsPort, NetworkPort } from '../plugins/runtime/ports.ts';

/** The hosts as plugins may use them. */
export function hostsPort(hosts: Hosts, engine: EngineService): HostsPort {
    const asHost = (reply: Reply<unknown>): Reply<Host> => reply as Reply<Host>;
    // The SDK's types of a host say less than the feature's own; the feature checks what plugins give it.
    return {
        all: () =>
            [...engine.draft().hosts.keys()].map(
                (id) => hosts.get(id) as unknown as Host /* the SDK's type says less */
            ),
        create: async (body, call, owner) =>
            asHost(await hosts.create(body as never /* checked there */, call, owner)),
        update: async (id, change, call) =>
            asHost(await hosts.update(id, change as never /* checked there */, call)),
        remove: (id, call) => hosts.remove(id, call),
        upstreams: async () =>
            (await engine.upstreams()).map(({ address, requests, fails }) => ({
                address,
                requests,
                healthy: fails === 0
            })),
        revision: () => engine.revisions({ before: null, limit: 1 }).rows[0]?.number ?? 0
    };
}

/** Those that are only ordered are none yet. */
export function certificatesPort(certificates: Certificates): CertificatesPort {
    return {
        all: async () =>
            (await certificates.list()).flatMap(({ id, name, domains, notAfter, owner }): Certificate[] =>
                notAfter === null ? [] : [{ id, name, domains, notAfter: new Date(notAfter), owner }]
            ),
        async upload(body, call, owner) {
            const {
                data: { id, name, domains, notAfter }
            } = await certificates.upload(body, call, owner);
            return { id, name, domains, notAfter: new Date(notAfter ?? 0), owner };
        },
        remove: (id, call) => certificates.remove(id, call)
    };
}

/** What a plugin may reach is a matter of its grants alone: what the panel's own setting allows is not its. */
export function networkPort(log: Logger): NetworkPort {
    const ranges = (texts: readonly string[]): Range[] => texts.flatMap((text) => parseRange(text) ?? []);
    return {
        outbound: (allow) => createOutbound({ allow, log }),
        forbids(text, allow) {
            const address = parseAddress(text);
            return address === null ? 'not a plain address' : forbids(address, ranges(allow), []);
        },
        within(text, allow) {
            const address = parseAddress(text);
            return address !== null && ranges(allow).some((range) => contains(range, address));
        }
    };
}
