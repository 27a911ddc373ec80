/** A real npm registry for one test, and a proxy in front of it that can fail in every way in which networks fail. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { freePort } from '../ports.ts';
import { packageArchive } from '../registry/archive.ts';

export interface NpmRegistry {
    /** URL for clients: that of the proxy. */
    readonly url: string;
    /** The folder of its files: `<storage>/<package>/<name>-<version>.tgz`. */
    readonly storage: string;
    /** Requested paths since the start or the last `forget()`. */
    readonly asked: string[];
    /** Answers in place of the registry; it returns true when it has answered. `pass(edit)` asks the registry and edits its JSON. */
    intercept:
        | ((
              request: IncomingMessage,
              response: ServerResponse,
              pass: (edit: (body: unknown) => unknown) => Promise<void>
          ) => boolean)
        | null;
    /** Publishes a package. `archive` replaces the archive of its files. */
    publish(
        packageJson: Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string },
        files?: Readonly<Record<string, string>>,
        archive?: Uint8Array
    ): Promise<void>;
    stop(): Promise<void>;
}

const patienceMs = 30_000;

export async function startNpmRegistry(): Promise<NpmRegistry> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-npm-'));
    const storage = join(folder, 'storage');
    const config = join(folder, 'config.yaml');
    const port = await freePort();
    writeFileSync(
        config,
        JSON.stringify({
            storage,
            web: { enable: false },
            auth: {},
            uplinks: {},
            max_body_size: '200mb',
            publish: { allow_offline: true },
            packages: {
                '@*/*': { access: '$all', publish: '$all', unpublish: '$all' },
                '**': { access: '$all', publish: '$all', unpublish: '$all' }
            },
            log: { type: 'stdout', level: 'error' }
        })
    );
    const child = spawn(
        process.execPath,
        [
            fileURLToPath(import.meta.resolve('verdaccio/bin/verdaccio')),
            '--config',
            config,
            '--listen',
            `http://127.0.0.1:${port}/`
        ],
        { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'], HOME: folder } }
    );
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const direct = `http://127.0.0.1:${port}/`;
    const end = performance.now() + patienceMs;
    while (
        !(await fetch(new URL('-/ping', direct)).then(
            ({ ok }) => ok,
            () => false
        ))
    ) {
        if (child.exitCode !== null || performance.now() > end) {
            child.kill('SIGKILL');
            throw new Error(`The npm registry did not start: ${said}`);
        }
        await wait(100);
    }
    const asked: string[] = [];
    const front = createServer((incoming, response) => {
        asked.push(incoming.url ?? '');
        const pass = async (edit: (body: unknown) => unknown): Promise<void> => {
            const answer = await fetch(new URL(incoming.url ?? '/', direct), {
                headers: { host: incoming.headers.host ?? '', accept: 'application/json' }
            });
            const text = JSON.stringify(edit(await answer.json()));
            response
                .writeHead(answer.status, {
                    'content-type': 'application/json',
                    'content-length': Buffer.byteLength(text)
                })
                .end(text.replaceAll(direct, registry.url));
        };
        if (registry.intercept?.(incoming, response, pass) !== true) {
            const onward = request(
                new URL(incoming.url ?? '/', direct),
                { method: incoming.method, headers: incoming.headers },
                (answer) => {
                    response.writeHead(answer.statusCode ?? 502, answer.headers);
                    answer.pipe(response);
                }
            );
            onward.on('error', () => response.destroy());
            incoming.pipe(onward);
        }
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const registry: NpmRegistry = {
        url: `http://127.0.0.1:${(front.address() as AddressInfo).port}/`,
        storage,
        asked,
        intercept: null,
        async publish(packageJson, files = {}, archive = packageArchive(packageJson, files)) {
            const { name, version } = packageJson;
            const file = `${name.split('/').at(-1)}-${version}.tgz`;
            const tarball = new URL(`${name}/-/${file}`, direct).href;
            const dist = {
                integrity: `sha512-${createHash('sha512').update(archive).digest('base64')}`,
                shasum: createHash('sha1').update(archive).digest('hex'),
                tarball
            };
            const answer = await fetch(new URL(name.replace('/', '%2f'), direct), {
                method: 'PUT',
                headers: { 'content-type': 'application/json' },
                body: JSON.stringify({
                    _id: name,
                    name,
                    'dist-tags': { latest: version },
                    versions: { [version]: { ...packageJson, _id: `${name}@${version}`, dist } },
                    _attachments: {
                        [`${name}-${version}.tgz`]: {
                            content_type: 'application/octet-stream',
                            data: Buffer.from(archive).toString('base64'),
                            length: archive.length
                        }
                    }
                })
            });
            if (!answer.ok) {
                throw new Error(
                    `${name} ${version} was not published: ${answer.status} ${await answer.text()}`
                );
            }
        },
        async stop() {
            front.closeAllConnections();
            front.close();
            child.kill('SIGTERM');
            const patience = setTimeout(() => child.kill('SIGKILL'), 5000);
            await ended;
            clearTimeout(patience);
            rmSync(folder, { recursive: true, force: true });
        }
    };
    return registry;
}
