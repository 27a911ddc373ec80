import { createSocket } from 'node:dgram';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

import { bindWhenFree } from '../../platform/address/ephemeral-port.ts';
import type { EngineConfig } from '../port.ts';

/** An address that the engine would listen on. */
export interface Listener {
    readonly network: 'tcp' | 'udp';
    /** Empty: every address of the machine. */
    readonly host: string;
    readonly port: number;
}

/** A listen address whose ports are a range longer than this is left to the engine. */
const longestRange = 64;

/** How long a port is waited for that an outgoing connection has. */
const bindMs = 3_000;

/**
 * Every TCP address, and UDP address for HTTP/3, that a configuration makes the engine listen on. Unix sockets and what only
 * the engine can resolve (placeholders) are left out.
 */
export const listenersOf = (config: EngineConfig): readonly Listener[] => {
    const http = record(record(config['apps'])['http']);
    const httpsPort = typeof http['https_port'] === 'number' ? http['https_port'] : 443;
    const httpPort = httpPortOf(config);
    const found = new Map<string, Listener>();
    const add = (listener: Listener): void => void found.set(keyOf(listener), listener);

    for (const server of Object.values(record(http['servers'])).map(record)) {
        const secure = list(server['tls_connection_policies']).length > 0;
        const protocols = list(server['protocols']);
        for (const address of list(server['listen']).filter((entry) => typeof entry === 'string')) {
            for (const listener of parseListen(address)) {
                add(listener);
                if (
                    listener.network === 'tcp' &&
                    listener.port !== httpPort &&
                    (secure || listener.port === httpsPort) &&
                    (protocols.length === 0 || protocols.includes('h3'))
                ) {
                    add({ ...listener, network: 'udp' });
                }
            }
        }
    }

    return [...found.values()];
};

/** The port on which the engine serves plain HTTP, whatever its TLS policies say. */
export const httpPortOf = (config: EngineConfig): number => {
    const { http_port: port } = record(record(config['apps'])['http']);
    return typeof port === 'number' ? port : 80;
};

/** Names a listener, for comparison and for messages. */
export const keyOf = (listener: Listener): string =>
    `${listener.network === 'udp' ? 'udp/' : ''}${listener.host.includes(':') ? `[${listener.host}]` : listener.host}:${listener.port}`;

/**
 * Tries which of the listeners could not be bound, by binding each for a moment. An address that the engine itself holds is free, one that its
 * configuration names is not looked at.
 * What the panel may not bind is not judged: the engine may.
 * @param engine - the running engine, and what it listens on by its configuration
 * @returns one sentence for each that is taken
 */
export const probeListeners = async (
    listeners: readonly Listener[],
    engine: { readonly pid: number | null; readonly listeners: readonly Listener[] }
): Promise<readonly string[]> => {
    const problems: string[] = [];
    const held = new Set(engine.listeners.map(keyOf));
    for (const listener of listeners.filter((wanted) => !held.has(keyOf(wanted)))) {
        const code = await (listener.network === 'tcp' ? bindTcpWhenFree(listener) : bindUdp(listener));
        if (code === 'EADDRINUSE') {
            const holders = holdersOf(listener);
            const other = holders.find(({ pid }) => pid !== engine.pid);
            // Whose sockets the panel may not see is told by the configuration instead.
            const itself = engine.listeners.some(
                (held) => held.network === listener.network && held.port === listener.port
            );
            if (other !== undefined || (holders.length === 0 && !itself)) {
                problems.push(
                    `listening on ${keyOf(listener)}: the address is in use${other === undefined ? '' : ` by ${other.name} (process ${other.pid})`}`
                );
            }
        } else if (code === 'EADDRNOTAVAIL') {
            problems.push(`listening on ${keyOf(listener)}: the machine has no such address`);
        }
    }

    return problems;
};

const parseListen = (address: string): readonly Listener[] => {
    const match =
        /^(?:(tcp|udp)[46]?\/)?(?:\[([0-9A-Fa-f:.%\w]+)\]|([^[\]{}/:]*)):(\d{1,5})(?:-(\d{1,5}))?$/.exec(
            address
        );
    const first = Number(match?.[4]);
    const last = Number(match?.[5] ?? first);
    if (match === null || first > last || last > 65_535 || last - first > longestRange) {
        return [];
    }

    const network = match[1] === 'udp' ? 'udp' : 'tcp';
    return Array.from({ length: last - first + 1 }, (_, index) => ({
        network,
        host: match[2] ?? match[3] ?? '',
        port: first + index
    }));
};

const bindTcpWhenFree = (listener: Listener): Promise<string | null> =>
    bindWhenFree(listener.port, () => bindTcp(listener), bindMs).catch(
        (error: NodeJS.ErrnoException) => error.code ?? 'UNKNOWN'
    );

const bindTcp = ({ host, port }: Listener): Promise<null> =>
    new Promise((done, reject) => {
        const server = createServer();
        server.once('error', reject);
        server.listen({ port, exclusive: true, ...(host === '' ? {} : { host }) }, () =>
            server.close(() => done(null))
        );
    });

const bindUdp = ({ host, port }: Listener): Promise<string | null> =>
    new Promise((done) => {
        const socket = createSocket(host === '' || host.includes(':') ? 'udp6' : 'udp4');
        socket.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'UNKNOWN'));
        socket.bind({ port, exclusive: true, ...(host === '' ? {} : { address: host }) }, () =>
            socket.close(() => done(null))
        );
    });

/** Who has a socket open on that port, as far as the panel may look. */
const holdersOf = (listener: Listener): readonly { readonly pid: number; readonly name: string }[] => {
    const inodes = new Set<string>();
    for (const table of [listener.network, `${listener.network}6`]) {
        for (const line of (read(`/proc/net/${table}`) ?? '').split('\n').slice(1)) {
            const fields = line.trim().split(/\s+/);
            const port = Number.parseInt(fields[1]?.split(':')[1] ?? '', 16);
            // 0A is LISTEN, 07 an unconnected UDP socket.
            if (
                port === listener.port &&
                (fields[3] === '0A' || fields[3] === '07') &&
                fields[9] !== undefined
            ) {
                inodes.add(`socket:[${fields[9]}]`);
            }
        }
    }

    return readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name) && hasOpen(name, inodes))
        .map((name) => ({
            pid: Number(name),
            name:
                linkOf(`/proc/${name}/exe`).split('/').at(-1) ||
                read(`/proc/${name}/comm`)?.trim() ||
                'a process'
        }));
};

const hasOpen = (pid: string, links: ReadonlySet<string>): boolean => {
    try {
        return readdirSync(`/proc/${pid}/fd`).some((fd) => links.has(linkOf(`/proc/${pid}/fd/${fd}`)));
    } catch {
        return false;
    }
};

const linkOf = (path: string): string => {
    try {
        return readlinkSync(path);
    } catch {
        return '';
    }
};

const read = (path: string): string | null => {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return null;
    }
};

const record = (value: unknown): Readonly<Record<string, unknown>> =>
    typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
