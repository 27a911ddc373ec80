/** A real engine for tests of the renderer: `caddy run` in a temporary folder, on the loopback address, without the panel's driver. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { drainFormerConnections } from '../../../core/src/engine/caddy/config/former-connections.ts';
import { SiteTable } from '../../../core/src/engine/files/table/table.ts';
import type { EngineConfig } from '../../../core/src/engine/port.ts';
import type { CompileContext } from '../../../core/src/engine/render/compile/context.ts';
import { engineFeatures } from '../../../core/src/engine/render/features.ts';
import {
    Projection,
    type ProjectionChange,
    type ProjectionStep
} from '../../../core/src/engine/render/projection/projection.ts';
import type { EngineSettings } from '../../../core/src/engine/site.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';

export interface Reply {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
    /** The certificate of an answer over HTTPS. */
    readonly certificate?: { readonly issuer: string; readonly subjectAltName: string };
}

export interface Ask {
    readonly host?: string;
    readonly path?: string;
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string | readonly string[]>>;
    readonly body?: string | Buffer;
    readonly https?: boolean;
    /** The name for SNI; default: the host without its port. */
    readonly servername?: string;
    /** Milliseconds without an answer that count as a failure; default 10,000. */
    readonly timeoutMs?: number;
}

export interface TestCaddy {
    readonly context: CompileContext;
    readonly settings: EngineSettings;
    readonly projection: Projection;
    readonly table: SiteTable;
    readonly folder: string;
    readonly pid: number;
    /** Applies a change to the running engine as the panel would: loads the configuration if needed, then changes the table. */
    apply(change: ProjectionChange): Promise<ProjectionStep>;
    load(config: EngineConfig): Promise<void>;
    ask(ask: Ask): Promise<Reply>;
    log(): string;
    close(): Promise<void>;
}

export const version262 = { text: '2.6.2', major: 2, minor: 6, patch: 2 };

/** Starts the engine. @param environment - variables of its environment beside those of its folders */
export const startCaddy = async (
    settings: Partial<EngineSettings> = {},
    environment: Readonly<Record<string, string>> = {}
): Promise<TestCaddy> => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-compile-'));
    const folders = {
        adminSocket: join(folder, 'admin.sock'),
        storage: join(folder, 'storage'),
        table: join(folder, 'table'),
        certificates: join(folder, 'certificates'),
        logFile: join(folder, 'engine.log'),
        accessLogFile: join(folder, 'access.log'),
        owner: { name: 'test', uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, switched: false }
    };
    for (const path of [folders.storage, folders.table, folders.certificates]) {
        mkdirSync(path, { mode: 0o700 });
    }

    const all = {
        httpPort: await freePort(),
        httpsPort: await freePort(),
        acmeEmail: null,
        acmeDirectory: 'http://127.0.0.1:9/directory',
        acmeEab: null,
        accessLog: false,
        ...settings
    };
    const context = { settings: all, folders, features: engineFeatures(version262), address: '127.0.0.1' };
    const start = join(folder, 'start.json');
    writeFileSync(
        start,
        JSON.stringify({
            admin: { listen: `unix/${folders.adminSocket}`, origins: ['caddy'], config: { persist: false } }
        })
    );
    const child = spawn('caddy', ['run', '--config', start], {
        stdio: 'ignore',
        env: {
            PATH: process.env['PATH'] ?? '',
            HOME: folder,
            XDG_DATA_HOME: folder,
            XDG_CONFIG_HOME: folder,
            ...environment
        }
    });
    const ended = new Promise<void>((resolve) => {
        child.once('exit', () => resolve());
        child.once('error', () => resolve());
    });

    const admin = (method: string, path: string, body?: string): Promise<Reply> =>
        send(
            {
                socketPath: folders.adminSocket,
                agent: false,
                method,
                path,
                headers: { host: 'caddy', ...(body !== undefined && { 'content-type': 'application/json' }) }
            },
            body,
            false
        );
    const load = async (config: EngineConfig): Promise<void> => {
        const reply = await admin('POST', '/load', JSON.stringify(config));
        if (reply.status !== 200) {
            throw new Error(`the engine refused: ${reply.body}`);
        }
    };

    const projection = new Projection(context);
    const table = new SiteTable(folders);
    try {
        await until(async () => (await admin('GET', '/config/')).status === 200, 'the engine answers');
        await load(projection.config());
    } catch (error) {
        child.kill('SIGKILL');
        await ended;
        rmSync(folder, { recursive: true, force: true });
        throw error;
    }

    projection.loaded();
    return {
        context,
        settings: all,
        projection,
        table,
        folder,
        pid: child.pid ?? 0,
        load,
        async apply(change) {
            const step = projection.change(change);
            if (step.needsReload) {
                try {
                    await load(step.config());
                } catch (error) {
                    step.undo();
                    throw error;
                }

                projection.loaded();
                // As the panel does: the previous configuration may still have connections.
                await drainFormerConnections(new Set([all.httpPort, all.httpsPort]));
            }

            await table.apply(step.table);
            return step;
        },
        ask: ({
            host = 'a.test',
            path = '/',
            method = 'GET',
            headers = {},
            body,
            https = false,
            servername,
            timeoutMs = 10_000
        }) => {
            const port = https ? all.httpsPort : all.httpPort;
            return send(
                {
                    host: '127.0.0.1',
                    port,
                    method,
                    path,
                    headers: {
                        host: host.includes(':') || https === false ? host : `${host}:${port}`,
                        ...headers
                    },
                    setHost: false,
                    agent: false,
                    timeout: timeoutMs,
                    ...(https && {
                        servername: servername ?? host.replace(/:\d*$/, ''),
                        rejectUnauthorized: false
                    })
                },
                body,
                https
            );
        },
        log: () => readFileSync(folders.logFile, 'utf8'),
        async close() {
            child.kill('SIGTERM');
            const late = setTimeout(() => child.kill('SIGKILL'), 3000);
            await ended;
            clearTimeout(late);
            rmSync(folder, { recursive: true, force: true });
        }
    };
};

const send = (options: RequestOptions, body: string | Buffer | undefined, https: boolean): Promise<Reply> =>
    new Promise((resolve, reject) => {
        const request = (https ? httpsRequest : httpRequest)({ timeout: 10_000, ...options }, (response) => {
            const chunks: Buffer[] = [];
            const socket = response.socket as import('node:tls').TLSSocket;
            const peer = https ? socket.getPeerCertificate() : null;
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', reject);
            response.on('end', () =>
                resolve({
                    status: response.statusCode ?? 0,
                    headers: response.headers,
                    body: Buffer.concat(chunks).toString('latin1'),
                    ...(peer !== null && {
                        certificate: {
                            issuer: String(peer.issuer?.CN ?? ''),
                            subjectAltName: peer.subjectaltname ?? ''
                        }
                    })
                })
            );
        });
        request.on('timeout', () => request.destroy(new Error('no answer in time')));
        request.on('error', reject);
        request.end(body);
    });
