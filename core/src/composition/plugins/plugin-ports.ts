/** The panel's services as the plugin runtime needs them: one adapter for each port. */
import { readFile } from 'node:fs/promises';

import type { Certificate, Host, PanelListener, Reply } from '@portico/sdk';

import { httpPortOf, listenersOf } from '../../engine/caddy/listeners.ts';
import type { EngineFolders } from '../../engine/files/home.ts';
import { type EngineConfig, EngineUnavailable } from '../../engine/port.ts';
import { probeUpstream } from '../../engine/probe.ts';
import type { EngineService } from '../../engine/service.ts';
import type { Certificates } from '../../features/certificates/service.ts';
import { checkedBody } from '../../features/hosts/input/unchecked.ts';
import type { Hosts } from '../../features/hosts/service.ts';
import { contains, parseIp, parseRanges } from '../../platform/address/ip.ts';
import type { Logger } from '../../platform/log/log.ts';
import { forbids } from '../../platform/outbound/addresses.ts';
import { Outbound } from '../../platform/outbound/client.ts';
import type { CertificatesPort, HostsPort, NetworkPort, PanelPort } from '../../plugins/runtime/ports.ts';
import type { Gateway } from '../../server/gateway/gateway.ts';

/** Hosts for plugins. The SDK describes a host as a plain object; every body that a plugin sends is checked as that of a request. */
export function hostsPort(hosts: Hosts, engine: EngineService, home: () => EngineFolders): HostsPort {
    // The SDK's types are wider than the service's on purpose: the schema decides.
    const asHost = (reply: Reply<unknown>): Reply<Host> => reply as Reply<Host>;
    return {
        // The SDK's `Host` lists the fields that plugins may rely on.
        all: () => [...engine.draft().hosts.keys()].map((id) => hosts.get(id) as unknown as Host),
        create: async (body, call, owner) =>
            asHost(await hosts.create(checkedBody('POST', body), call, owner)),
        update: async (id, change, call) => asHost(await hosts.update(id, checkedBody('PUT', change), call)),
        remove: (id, call) => hosts.remove(id, call),
        upstreams: async () =>
            (await engine.upstreams()).map(({ address, requests, fails }) => ({
                address,
                requests,
                healthy: fails === 0
            })),
        probe: probeUpstream,
        async account() {
            try {
                const { name, gid } = home().owner;
                const groups = (await readFile('/etc/group', 'utf8'))
                    .split('\n')
                    .map((line) => line.split(':'));
                return {
                    user: name,
                    group: groups.find((fields) => fields[2] === String(gid))?.[0] ?? String(gid)
                };
            } catch (error) {
                if (error instanceof EngineUnavailable) {
                    return null;
                }
                throw error;
            }
        },
        revision: () => engine.revisions({ before: null, limit: 1 }).rows[0]?.number ?? 0
    };
}

/** Certificates for plugins. One that is only ordered does not count yet. */
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

/** The network for plugins. A plugin's grants alone decide what it may reach; the setting `panel.outboundAllow` does not count. */
export function networkPort(log: Logger): NetworkPort {
    return {
        outbound: (allow) => new Outbound({ allow, log }),
        forbids(text, allow) {
            const address = parseIp(text);
            return address === null ? 'not a plain address' : forbids(address, parseRanges(allow), []);
        },
        within(text, allow) {
            const address = parseIp(text);
            return address !== null && parseRanges(allow).some((range) => contains(range, address));
        }
    };
}

/** Milliseconds that the list of listeners waits for the engine. */
const engineMs = 2_000;

/** What tells where the engine listens. */
type ListeningEngine = Pick<EngineService, 'process' | 'configNow' | 'desired'>;

/** The panel itself for plugins. @param gateway - is built after the plugins, and used when they ask */
export function panelPort(
    gateway: () => Gateway,
    engine: ListeningEngine,
    folders: PanelPort['folders'],
    rehearse: PanelPort['rehearse'],
    url: PanelPort['url'],
    hasPlugin: PanelPort['hasPlugin']
): PanelPort {
    return {
        folders,
        url,
        hasPlugin,
        rehearse,
        async listeners() {
            const own = gateway().address();
            const config = await servedConfig(engine);
            return [
                ...(own === null
                    ? []
                    : [{ role: 'panel', protocol: 'tcp', address: own.address, port: own.port } as const]),
                ...(config === null ? [] : engineListeners(config))
            ];
        }
    };
}

/** What the engine's process serves; null when there is no process. */
async function servedConfig(engine: ListeningEngine): Promise<EngineConfig | null> {
    if (engine.process().pid === null) {
        return null;
    }
    const silent = AbortSignal.timeout(engineMs);
    const late = new Promise<EngineConfig>((resolve) =>
        silent.addEventListener('abort', () => resolve(engine.desired()), { once: true })
    );
    return Promise.race([engine.configNow().catch(() => engine.desired()), late]);
}

function engineListeners(config: EngineConfig): readonly PanelListener[] {
    const httpPort = httpPortOf(config);
    return listenersOf(config).map(({ network, host, port }) => ({
        role: port === httpPort ? 'http' : 'https',
        protocol: network,
        address: host === '' ? '::' : host,
        port
    }));
}
