import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../../../support/engine/faulty.ts';
import { expectNoMore, held } from '../../../support/machine/held.ts';
import { startPanel } from '../../../support/panel/panel.ts';
import { ended } from '../../../support/plugins/panel.ts';
import { versionedPackage } from '../../../support/plugins/versioned.ts';
import { packageArchive } from '../../../support/registry/archive.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const rounds = 100;

describe('A sound plugin that is disabled and enabled a hundred times', { timeout: 300_000 }, () => {
    it('fails no request elsewhere, and leaves no handle and no heap behind', async () => {
        const panel = await startPanel({ driver: createFaultyEngine() });
        try {
            const { client } = panel;
            await panel.panel.settled();
            for (const name of ['rows', 'other']) {
                const answer = await fetch(`http://127.0.0.1:${panel.port}/api/plugins`, {
                    method: 'POST',
                    headers: { authorization: `Bearer ${client.token}`, 'content-type': 'application/gzip' },
                    body: packageArchive(...versionedPackage('1.0.0', { name }))
                });
                const text = await answer.text();
                const { data } = JSON.parse(text) as { data: { id: number } };
                expect((await ended(client, { status: answer.status, data, text })).result.state).to.equal(
                    'running'
                );
            }
            let running = true;
            const failures: string[] = [];
            let asked = 0;
            const traffic = async (path: string): Promise<void> => {
                while (running) {
                    const answer = await client.get(path);
                    asked += 1;
                    if (answer.status !== 200) {
                        failures.push(`${path} ${answer.status} ${answer.text}`);
                    }
                    await wait(2);
                }
            };
            const turn = async (count: number): Promise<void> => {
                for (let round = 0; round < count; round += 1) {
                    for (const enabled of [false, true]) {
                        const { data } = await client.put('/api/plugins/rows', { enabled });
                        expect(data.state).to.equal(enabled ? 'running' : 'disabled');
                        if (!enabled) {
                            expect([data.released.leaked, data.released.failures]).to.equal([[], []]);
                        }
                    }
                    expect(
                        (await client.post('/api/plugins/rows/rows', { text: String(round) })).status
                    ).to.equal(200);
                }
            };
            await turn(10);
            panel.lines.length = 0;
            const before = await held();
            const clients = ['/api/plugins/other/rows', '/api/settings', '/api/plugins/other/word'].map(
                traffic
            );
            await turn(rounds);
            running = false;
            await Promise.all(clients);
            panel.lines.length = 0;
            const after = await held(before);
            expect(failures).to.equal([]);
            expect(asked).to.be.above(rounds);
            expectNoMore(before, after);
            console.log(
                `      ${asked} requests elsewhere, none failed; files ${before.files} and ${after.files}, heap ${Math.round((after.heap - before.heap) / 1024)} KiB more`
            );
        } finally {
            await panel.close();
        }
    });
});
