/** Servers of this machine for checks: good, slow, expired and flapping ones, over HTTP, TCP, TLS and DNS. */
import { execFileSync } from 'node:child_process';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTls } from 'node:tls';

interface KeyPair {
    readonly key: string;
    readonly cert: string;
}

/** Starts servers, and ends all of them. */
export class Servers {
    readonly #folder = mkdtempSync(join(tmpdir(), 'portico-checks-'));
    readonly #open: (Server | UdpSocket)[] = [];
    readonly #sockets = new Set<Socket>();
    readonly authority = this.#sign('authority', ['-x509', '-days', '30', '-subj', '/O=Test/CN=Authority']);

    /** A certificate of the authority for localhost, that ends in so many days. */
    certificate(days: number): KeyPair {
        const name = `leaf${days}`;
        writeFileSync(join(this.#folder, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
        const at = (file: string): string => join(this.#folder, file);
        this.#openssl(
            'req',
            '-newkey',
            'rsa:2048',
            '-nodes',
            '-subj',
            '/CN=localhost',
            '-keyout',
            at(`${name}.key`),
            '-out',
            at(`${name}.csr`)
        );
        this.#openssl(
            ...[
                'x509',
                '-req',
                '-in',
                at(`${name}.csr`),
                '-CA',
                at('authority.pem'),
                '-CAkey',
                at('authority.key')
            ],
            ...['-extfile', at('names'), '-days', String(days), '-out', at(`${name}.pem`)]
        );
        return {
            key: readFileSync(at(`${name}.key`), 'utf8'),
            cert: readFileSync(at(`${name}.pem`), 'utf8')
        };
    }

    http(listener: RequestListener): Promise<number> {
        return this.#listen(createHttp(listener));
    }

    https(pair: KeyPair, listener: RequestListener): Promise<number> {
        return this.#listen(createHttps(pair, listener));
    }

    tls(pair: KeyPair): Promise<number> {
        return this.#listen(createTls(pair, (socket) => socket.on('error', () => undefined)));
    }

    tcp(talk: (socket: Socket) => void): Promise<number> {
        return this.#listen(createTcp(talk));
    }

    /** Answers each question for an A record with the address, if the name is `good.test`; for others, that there is no such name. */
    async dns(address: string): Promise<number> {
        const socket = createSocket('udp4');
        this.#open.push(socket);
        socket.on('message', (question, { port, address: from }) => {
            const end = question.indexOf(0, 12) + 5;
            const isKnown = question.subarray(12, end).toString('latin1').startsWith('\x04good\x04test');
            const head = Buffer.from(question.subarray(0, 12));
            head.writeUInt16BE(isKnown ? 0x8180 : 0x8183, 2);
            head.writeUInt16BE(isKnown ? 1 : 0, 6);
            head.writeUInt32BE(0, 8);
            const record = Buffer.from([
                ...[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4],
                ...address.split('.').map(Number)
            ]);
            socket.send(
                Buffer.concat([head, question.subarray(12, end), ...(isKnown ? [record] : [])]),
                port,
                from
            );
        });
        await new Promise<void>((resolve) => {
            socket.bind(0, '127.0.0.1', resolve);
        });
        return socket.address().port;
    }

    end(): void {
        this.#open.forEach((server) => server.close());
        this.#sockets.forEach((socket) => socket.destroy());
        rmSync(this.#folder, { recursive: true, force: true });
    }

    async #listen(server: Server): Promise<number> {
        this.#open.push(server);
        server.on('connection', (socket: Socket) => this.#sockets.add(socket));
        await new Promise<void>((resolve) => {
            server.listen(0, '127.0.0.1', resolve);
        });
        return (server.address() as AddressInfo).port;
    }

    #sign(name: string, args: readonly string[]): string {
        const file = join(this.#folder, `${name}.pem`);
        this.#openssl(
            'req',
            '-newkey',
            'rsa:2048',
            '-nodes',
            '-keyout',
            join(this.#folder, `${name}.key`),
            '-out',
            file,
            ...args
        );
        return readFileSync(file, 'utf8');
    }

    #openssl(...args: readonly string[]): void {
        execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'ignore'] });
    }
}
