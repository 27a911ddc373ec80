import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { packageArchive } from '../../support/archive.ts';
import { createFaultyEngine } from '../../support/faulty-engine.ts';
import { startPanel } from '../../support/panel.ts';
import { ended } from '../../support/plugin-panel.ts';
import { versionedPackage } from '../../support/versioned-plugin.ts';

export const lab = Lab.script();
const { describe, it } = lab;

/** What a hundred generations may leave in the heap: far less than one generation takes, which is some 300 KB. */
const noiseBytes = 4 * 1024 * 1024;
const rounds = 100;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

interface Held {
    readonly files: number;
    readonly resources: Readonly<Record<string, number>>;
    readonly heap: number;
}

/** What the process holds once it is quiet: the least of several looks, since the clients' own connections come and go. */
async function held(): Promise<Held> {
    const looks: Held[] = [];
    for (let look = 0; look < 6; look += 1) {
        await wait(150);
        collect();
        const resources: Record<string, number> = {};
        for (const name of process.getActiveResourcesInfo()) {
            resources[name] = (resources[name] ?? 0) + 1;
        }
        looks.push({ files: readdirSync('/proc/self/fd').length, resources, heap: process.memoryUsage().heapUsed });
    }
    return looks.reduce((least, each) => (each.files < least.files || (each.files === least.files && each.heap < least.heap) ? each : least));
}

describe('A sound plugin that is disabled and enabled a hundred times', { timeout: 300_000 }, () => {
    it('fails no request elsewhere, and leaves no handle and no heap behind', async () => {
        const panel = await startPanel({ driver: createFaultyEngine() });
        try {
            const { client } = panel;
            await panel.panel.settled();
            for (const name of ['rows', 'other']) {
                const answer = await fetch(`http://127.0.0.1:${panel.port}/api/plugins`, { method: 'POST', headers: { authorization: `Bearer ${client.token}`, 'content-type': 'application/gzip' }, body: packageArchive(...versionedPackage('1.0.0', { name })) as never });
                const body = JSON.parse(await answer.text()) as { data: { id: number } };
                expect((await ended(client, { status: answer.status, data: body.data } as never)).result.state).to.equal('running');
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
                    expect((await client.post('/api/plugins/rows/rows', { text: String(round) })).status).to.equal(200);
                }
            };
            await turn(10);
            panel.lines.length = 0;
            const before = await held();
            const clients = ['/api/plugins/other/rows', '/api/settings', '/api/plugins/other/word'].map(traffic);
            await turn(rounds);
            running = false;
            await Promise.all(clients);
            panel.lines.length = 0;
            const after = await held();
            expect(failures).to.equal([]);
            expect(asked).to.be.above(rounds);
            expect(after.files).to.be.at.most(before.files);
            for (const [name, count] of Object.entries(after.resources).filter(([kind]) => !['Timeout', 'Immediate', 'TickObject', 'TCPSocketWrap'].includes(kind))) {
                expect([name, count <= (before.resources[name] ?? 0)]).to.equal([name, true]);
            }
            expect((after.resources['Timeout'] ?? 0) - (before.resources['Timeout'] ?? 0)).to.be.at.most(2);
            expect(after.heap - before.heap).to.be.below(noiseBytes);
            console.log(`      ${asked} requests elsewhere, none failed; files ${before.files} and ${after.files}, heap ${Math.round((after.heap - before.heap) / 1024)} KiB more`);
        }
        finally {
            await panel.close();
        }
    });
});
