/**
 * A real BIND, as the user `nobody`, with a zone that can be updated with a key. BIND listens on 127.0.0.1 only. A relay listens on port 53 of
 * another loopback address, because clients look for name servers on port 53, and can change the datagrams that pass.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../ports.ts';
import { until } from '../until.ts';

export interface Bind {
    readonly address: string;
    readonly zone: string;
    /** The `credentials` of a provider of the type rfc2136. */
    readonly credentials: {
        readonly nameserver: string;
        readonly keyName: string;
        readonly keySecret: string;
    };
    /** The TXT records of a name, as the server answers them. */
    texts(name: string): Promise<readonly string[]>;
    /** Replaces a datagram of the server by another one, or drops it (null). */
    spoil: ((reply: Buffer, question: Buffer) => Buffer | null) | null;
    /** Number of TCP connections so far. */
    readonly connections: number;
    close(): Promise<void>;
}

const nobody = 65_534;

/** Why it cannot be started here; undefined where it can. Port 53 needs root. */
export const noBind = process.getuid?.() === 0 ? undefined : 'only root may start a name server on port 53';

export interface BindOptions {
    readonly zone?: string;
    /** Lines of the zone file. */
    readonly records?: string;
    readonly algorithm?: string;
    readonly policy?: string;
}

export async function startBind({
    zone = 'example.test',
    records = '',
    algorithm = 'hmac-sha256',
    policy = 'grant panel-key zonesub ANY;'
}: BindOptions = {}): Promise<Bind> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-bind-'));
    chmodSync(folder, 0o755);
    const address = `127.${randomInt(2, 250)}.${randomInt(1, 250)}.${randomInt(2, 250)}`;
    const port = await freePort();
    const secret = randomBytes(32).toString('base64');
    const home = join(folder, 'named');
    mkdirSync(home);
    writeFileSync(
        join(home, 'zone.db'),
        `$TTL 1\n@ IN SOA ns h (1 60 60 600 1)\n@ IN NS ns\nns IN A ${address}\n${records}`
    );
    const conf = join(folder, 'named.conf');
    writeFileSync(
        conf,
        `
key "panel-key" { algorithm ${algorithm}; secret "${secret}"; };
options { directory "${home}"; pid-file "named.pid"; session-keyfile "session.key"; managed-keys-directory "."; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
    recursion no; empty-zones-enable no; dnssec-validation no; notify no; };
controls { };
zone "${zone}" { type primary; file "zone.db"; update-policy { ${policy} }; };
`
    );
    for (const path of [home, join(home, 'zone.db'), conf]) {
        chownSync(path, nobody, nobody);
    }
    const child: ChildProcess = spawn(
        'setpriv',
        [
            `--reuid=${nobody}`,
            `--regid=${nobody}`,
            '--clear-groups',
            '--inh-caps=-all',
            'named',
            '-f',
            '-n',
            '1',
            '-c',
            conf
        ],
        { stdio: 'ignore' }
    );
    const resolver = new Resolver({ timeout: 1_000, tries: 3 });
    resolver.setServers([`127.0.0.1:${port}`]);
    const relay = await openRelay(address, port);
    const { close: closeRelay } = relay;
    const close = async (): Promise<void> => {
        resolver.cancel();
        closeRelay();
        if (child.exitCode === null && child.signalCode === null) {
            child.kill('SIGKILL');
            await once(child, 'exit');
        }
        rmSync(folder, { recursive: true, force: true });
    };
    try {
        await until(
            async () => child.exitCode === null && (await resolver.resolve4(`ns.${zone}`))[0] === address,
            'the name server answers'
        );
    } catch (error) {
        await close();
        throw error;
    }
    return Object.assign(relay, {
        address,
        zone,
        credentials: { nameserver: address, keyName: 'panel-key', keySecret: secret },
        async texts(name: string) {
            try {
                return (await resolver.resolveTxt(name)).map((parts) => parts.join(''));
            } catch (error) {
                if (['ENODATA', 'ENOTFOUND'].includes((error as NodeJS.ErrnoException).code ?? '')) {
                    return [];
                }
                throw error;
            }
        },
        close
    });
}

async function openRelay(
    address: string,
    port: number
): Promise<Pick<Bind, 'spoil' | 'connections'> & { close(): void }> {
    const front = createSocket('udp4');
    const open = new Set<{ close(): void }>();
    const server = createServer((socket) => {
        relay.connections += 1;
        const onward = connect(port, '127.0.0.1');
        for (const [one, other] of [
            [socket, onward],
            [onward, socket]
        ] as const) {
            one.on('error', () => other.destroy());
            one.once('close', () => other.destroy());
            one.pipe(other);
        }
    });
    const relay = {
        spoil: null as Bind['spoil'],
        connections: 0,
        close() {
            front.close();
            server.close();
            open.forEach((socket) => socket.close());
        }
    };
    front.on('message', (question, peer) => {
        const back = createSocket('udp4');
        const end = (): void => {
            if (open.delete(back)) {
                clearTimeout(timer);
                back.close();
            }
        };
        const timer = setTimeout(end, 5_000).unref();
        open.add(Object.assign(back, { end }));
        back.once('error', end);
        back.once('message', (reply) => {
            const sent = relay.spoil === null ? reply : relay.spoil(reply, question);
            if (sent !== null) {
                front.send(sent, peer.port, peer.address);
            }
            end();
        });
        back.send(question, port, '127.0.0.1');
    });
    front.bind(53, address);
    server.listen(53, address);
    await Promise.all([once(front, 'listening'), once(server, 'listening')]);
    return relay;
}
