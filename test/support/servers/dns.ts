/** A DNS server on the loopback address that gives the answers of a test. It knows questions for A and AAAA, and its answers must not be cached. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';

export interface NameServer {
    /** Every question so far, such as `A flip.example`. */
    readonly asked: string[];
    /** Resolves a name at this server only. */
    resolve(name: string): Promise<readonly string[]>;
    close(): Promise<void>;
}

const types: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' };

/** Starts the server. `answer` gives the IPv4 addresses of a name at each question; an empty list means that there is no such name, null that the server does not answer. */
export async function openNameServer(
    answer: (name: string) => readonly string[] | null
): Promise<NameServer> {
    const asked: string[] = [];
    const server = createSocket('udp4');
    server.on('message', (message, peer) => {
        const labels: string[] = [];
        let at = 12;
        for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
            labels.push(message.toString('latin1', at + 1, at + 1 + length));
            at += length + 1;
        }
        const name = labels.join('.').toLowerCase();
        const type = message.readUInt16BE(at + 1);
        asked.push(`${types[type] ?? type} ${name}`);
        const known = answer(name);
        if (known === null) {
            return;
        }
        const addresses = type === 1 ? known.filter(isIPv4) : [];
        const header = Buffer.from(message.subarray(0, 12));
        header.writeUInt16BE(known.length === 0 ? 0x8183 : 0x8180, 2);
        header.writeUInt16BE(addresses.length, 6);
        header.writeUInt32BE(0, 8);
        const records = addresses.map((address) =>
            Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)])
        );
        server.send(
            Buffer.concat([header, message.subarray(12, at + 5), ...records]),
            peer.port,
            peer.address
        );
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    const resolver = new Resolver({ timeout: 2_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${server.address().port}`]);
    return {
        asked,
        resolve: (name) => resolver.resolve4(name),
        async close() {
            resolver.cancel();
            server.close();
            await once(server, 'close');
        }
    };
}
