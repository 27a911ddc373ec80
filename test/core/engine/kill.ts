import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { CaddyDriver } from '../../../core/src/engine/caddy/caddy.ts';
import { engineHome } from '../../../core/src/engine/files/home.ts';
import { Client } from '../../support/panel/client.ts';
import { panelArguments } from '../../support/panel/process.ts';
import { freePort } from '../../support/ports.ts';
import { startUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const password = 'a quiet harbour at dawn';

const ask = (port: number, host: string): Promise<number> =>
    new Promise((done, failed) => {
        request(
            { host: '127.0.0.1', port, path: '/', headers: { host }, agent: false, timeout: 5000 },
            (response) => {
                response.resume();
                done(response.statusCode ?? 0);
            }
        )
            .on('error', failed)
            .end();
    });

describe('a panel that is killed amid changes', { timeout: 120_000 }, () => {
    it('keeps every change that it acknowledged, and the engine serves what the rows say', async () => {
        const root = mkdtempSync(join(tmpdir(), 'portico-kill-'));
        chmodSync(root, 0o755);
        const dataDir = join(root, 'data');
        const upstream = await startUpstream('up');
        const [port, httpPort, httpsPort] = [await freePort(), await freePort(), await freePort()];
        const client = new Client(port);
        let panel: ChildProcess | null = null;
        const start = async (): Promise<void> => {
            panel = spawn(process.execPath, panelArguments, {
                stdio: 'ignore',
                env: {
                    PATH: process.env['PATH'] ?? '',
                    HOME: root,
                    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
                    PORTICO_HOST: '127.0.0.1',
                    PORTICO_PORT: String(port),
                    PORTICO_DATA_DIR: dataDir,
                    PORTICO_ADMIN_PASSWORD: password,
                    PORTICO_ENGINE_HTTP_PORT: String(httpPort),
                    PORTICO_ENGINE_HTTPS_PORT: String(httpsPort),
                    PORTICO_LOG_LEVEL: 'error',
                    PORTICO_PLUGIN_DIRS: root
                }
            });
            await until(async () => (await client.get('/readyz')).status === 200, 'the panel');
        };
        const kill = async (): Promise<void> => {
            const ended = panel === null ? null : once(panel, 'exit');
            panel?.kill('SIGKILL');
            await ended;
        };
        const acknowledged = new Map<string, boolean>();
        try {
            await start();
            client.token = String((await client.login('admin', password)).data.token);
            for (let round = 0; round < 4; round += 1) {
                let killed = false;
                const writing = Promise.all(
                    Array.from({ length: 3 }, async (_, lane) => {
                        for (let index = 0; !killed; index += 1) {
                            const domain = `r${round}l${lane}n${index}.test`;
                            // Every third one has a behaviour of its own and needs a load.
                            const more =
                                index % 3 === 0
                                    ? {
                                          headers: {
                                              request: [],
                                              response: [{ op: 'set', name: 'x-own', value: domain }]
                                          }
                                      }
                                    : {};
                            const answer = await client
                                .post('/api/hosts', { domain, upstream: upstream.address, ...more })
                                .catch(() => null);
                            if (answer?.status === 201) {
                                acknowledged.set(domain, answer.data.state === 'applied');
                            }
                        }
                    })
                );
                const before = acknowledged.size;
                await until(() => acknowledged.size > before + 3 + round * 2, 'some changes');
                await kill();
                killed = true;
                await writing;
                const served = [...acknowledged.keys()][0] ?? '';
                expect(await ask(httpPort, served)).to.equal(200);
                await start();
            }

            const { data: hosts } = await client.get('/api/hosts');
            const rows = new Set(hosts.map(({ domain }: { domain: string }) => domain));
            expect([...acknowledged.keys()].filter((domain) => !rows.has(domain))).to.equal([]);
            expect(hosts.filter(({ state }: { state: string }) => state !== 'applied')).to.equal([]);
            for (const domain of rows) {
                expect(await ask(httpPort, String(domain))).to.equal(200);
            }

            expect((await client.get('/api/proxyengine/drift')).data.drifted).to.be.false();
            const revisions = await client.get('/api/proxyengine/revisions?limit=200');
            expect(revisions.data.every(({ applied }: { applied: boolean }) => applied)).to.be.true();
        } finally {
            await kill();
            const driver = new CaddyDriver({
                binary: null,
                dataDir,
                user: null,
                log: { info: () => undefined, warn: () => undefined, error: () => undefined }
            });
            await driver.stop();
            await driver.close();
            const { persistent, runtime } = engineHome(dataDir, null);
            for (const folder of [root, persistent, runtime]) {
                rmSync(folder, { recursive: true, force: true });
            }

            await upstream.close();
        }
    });
});
