import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../support/engine/faulty.ts';
import { expectNoMore, held } from '../support/machine/held.ts';
import { startPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const rounds = 100;
const extensions = new URL('../../extensions', import.meta.url).pathname;
/** A route of each that needs nothing but a root. */
const routes: Readonly<Record<string, string>> = {
    container: 'exceptions',
    cronjob: 'tasks',
    database: 'servers',
    filemanager: 'files?root=here&path=/',
    firewall: 'zones',
    monitoring: 'metrics',
    php: 'sites'
};

describe('Each extension, disabled and enabled a hundred times in a panel', { timeout: 600_000 }, () => {
    for (const [name, route] of Object.entries(routes)) {
        it(`fails no request elsewhere, and leaves nothing behind: ${name}`, async () => {
            const root = mkdtempSync(join(tmpdir(), 'portico-hundred-'));
            mkdirSync(join(root, 'files'));
            const panel = await startPanel({
                driver: createFaultyEngine(),
                environment: { PORTICO_PLUGIN_DIRS: extensions }
            });
            try {
                const { client } = panel;
                await panel.panel.settled();
                await client.put('/api/plugins/filemanager', {
                    settings: { roots: [{ name: 'here', path: join(root, 'files'), roles: ['admin'] }] }
                });
                const failures: string[] = [];
                let asked = 0;
                let running = true;
                const traffic = async (path: string): Promise<void> => {
                    while (running) {
                        const { status, text } = await client.get(path);
                        asked += 1;
                        if (status !== 200) {
                            failures.push(`${path} ${status} ${text}`);
                        }
                        await wait(5);
                    }
                };
                const turn = async (count: number): Promise<void> => {
                    for (let round = 0; round < count; round += 1) {
                        const off = await client.put(`/api/plugins/${name}`, { enabled: false });
                        expect([
                            off.data.state,
                            off.data.released.leaked,
                            off.data.released.failures,
                            off.data.released.cut
                        ]).to.equal(['disabled', [], [], 0]);
                        const on = await client.put(`/api/plugins/${name}`, { enabled: true });
                        expect([on.data.state, on.data.failure]).to.equal(['running', null]);
                        expect((await client.get(`/api/plugins/${name}/${route}`)).status).to.equal(200);
                    }
                };
                await turn(10);
                panel.lines.length = 0;
                const before = await held();
                const others = Object.entries(routes)
                    .filter(([other]) => other !== name)
                    .map(([other, path]) => `/api/plugins/${other}/${path}`);
                const clients = [...others, '/api/settings'].map(traffic);
                await turn(rounds);
                running = false;
                await Promise.all(clients);
                panel.lines.length = 0;
                const after = await held();
                expect(failures).to.equal([]);
                expect(asked).to.be.above(rounds);
                expectNoMore(before, after);
                console.log(
                    `      ${name}: ${asked} requests elsewhere, none failed; files ${before.files} and ${after.files}, heap ${Math.round((after.heap - before.heap) / 1024)} KiB more`
                );
            } finally {
                await panel.close();
                rmSync(root, { recursive: true, force: true });
            }
        });
    }
});
