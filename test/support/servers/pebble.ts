/** A real ACME server (Pebble), with a proxy before it that can answer in its place. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { selfSigned } from './self-signed.ts';

export interface Pebble {
    /** Directory URL, through the proxy. */
    readonly directory: string;
    /** The root certificate of its own server, in PEM. */
    readonly root: string;
    /** The root certificate of the certificates that it issues, in PEM. */
    issuer(): Promise<string>;
    /** Requests so far, such as `POST /order-plz`. */
    readonly asked: string[];
    /** Answers in place of the CA where it returns an answer. The path is the CA's own. */
    answer:
        | ((
              method: string,
              path: string
          ) =>
              | {
                    readonly status: number;
                    readonly headers?: Readonly<Record<string, string>>;
                    readonly body?: unknown;
                }
              | null
              | Promise<null>)
        | null;
    close(): Promise<void>;
}

export interface PebbleOptions {
    /** `address:port` of the name server that it uses. */
    readonly dns: string;
    /** Percentage of valid nonces that it refuses. */
    readonly badNonces?: number;
    readonly validitySeconds?: number;
    /** Key ids and MAC keys for the external binding of accounts, which is then required. */
    readonly eab?: Readonly<Record<string, string>>;
}

export async function startPebble({
    dns,
    badNonces = 0,
    validitySeconds = 86_400,
    eab
}: PebbleOptions): Promise<Pebble> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-pebble-'));
    const { certificate, key } = selfSigned(['localhost', '127.0.0.1']);
    writeFileSync(join(folder, 'cert.pem'), certificate);
    writeFileSync(join(folder, 'key.pem'), key);
    const [port, management, unused] = [await freePort(), await freePort(), await freePort()];
    writeFileSync(
        join(folder, 'pebble.json'),
        JSON.stringify({
            pebble: {
                listenAddress: `127.0.0.1:${port}`,
                managementListenAddress: `127.0.0.1:${management}`,
                certificate: join(folder, 'cert.pem'),
                privateKey: join(folder, 'key.pem'),
                httpPort: unused,
                tlsPort: unused,
                certificateValidityPeriod: validitySeconds,
                ...(eab === undefined
                    ? {}
                    : { externalAccountBindingRequired: true, externalAccountMACKeys: eab })
            }
        })
    );
    const child: ChildProcess = spawn('pebble', ['-config', join(folder, 'pebble.json'), '-dnsserver', dns], {
        stdio: 'ignore',
        env: {
            PATH: process.env['PATH'],
            PEBBLE_VA_NOSLEEP: '1',
            PEBBLE_WFE_NONCEREJECT: String(badNonces),
            ...(process.env['PORTICO_TEST_FILE'] === undefined
                ? {}
                : { PORTICO_TEST_FILE: process.env['PORTICO_TEST_FILE'] })
        }
    });
    const root = readFileSync(join(folder, 'cert.pem'), 'utf8');
    const asked: string[] = [];
    const proxy: Server = createServer(
        { cert: root, key: readFileSync(join(folder, 'key.pem')) },
        (request, response) => {
            handle(request, response).catch(() => response.destroy());
        }
    );
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const base = `https://localhost:${(proxy.address() as AddressInfo).port}`;
    const pebble: Pebble = {
        directory: `${base}/dir`,
        root,
        asked,
        answer: null,
        issuer: () => get(`https://127.0.0.1:${management}/roots/0`),
        async close() {
            proxy.close();
            proxy.closeAllConnections();
            if (child.exitCode === null && child.signalCode === null) {
                child.kill('SIGKILL');
                await once(child, 'exit');
            }
            rmSync(folder, { recursive: true, force: true });
        }
    };

    async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
        const { method = '', url = '' } = request;
        asked.push(`${method} ${url}`);
        const own = (await pebble.answer?.(method, url)) ?? null;
        if (own !== null) {
            request.resume();
            response.writeHead(own.status, { 'content-type': 'application/problem+json', ...own.headers });
            response.end(JSON.stringify(own.body ?? {}));
            return;
        }
        // Pebble takes the host of its URLs from the Host header.
        const onward = httpsRequest(
            {
                host: '127.0.0.1',
                port,
                method,
                path: url,
                headers: request.headers,
                rejectUnauthorized: false
            },
            (answer) => {
                response.writeHead(answer.statusCode ?? 502, answer.headers);
                answer.pipe(response);
            }
        );
        onward.once('error', () => response.destroy());
        request.pipe(onward);
    }

    function get(url: string): Promise<string> {
        return new Promise((resolve, reject) => {
            httpsRequest(url, { rejectUnauthorized: false, timeout: 3_000 }, (answer) => {
                let text = '';
                answer
                    .setEncoding('utf8')
                    .on('data', (part: string) => (text += part))
                    .once('end', () => resolve(text));
            })
                .once('error', reject)
                .end();
        });
    }

    try {
        await until(
            async () => (await get(`https://127.0.0.1:${port}/dir`)).includes('newOrder'),
            'pebble answers'
        );
    } catch (error) {
        await pebble.close();
        throw error;
    }
    return pebble;
}
