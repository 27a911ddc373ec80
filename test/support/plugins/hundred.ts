/** Disables and enables extensions a hundred times each, in a panel that has all of them and is asked meanwhile. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import type * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../engine/faulty.ts';
import { expectNoMore, held } from '../machine/held.ts';
import { startPanel } from '../panel/panel.ts';

const rounds = 100;
const extensions = new URL('../../../extensions', import.meta.url).pathname;
/** A route of each that needs nothing but a root. */
const routes: Readonly<Record<string, string>> = {
    backup: 'plans',
    ai: 'presets',
    appstore: 'sources',
    container: 'exceptions',
    cronjob: 'tasks',
    database: 'servers',
    deploy: 'projects',
    filemanager: 'files?root=here&path=/',
    firewall: 'zones',
    mcpserver: 'tools',
    monitoring: 'metrics',
    php: 'sites'
};

/** Who cannot run without it: they are off meanwhile. */
const requiredBy: Readonly<Record<string, readonly string[]>> = { container: ['appstore'] };

type Panel = Awaited<ReturnType<typeof startPanel>>;

/** Requests that go on, one after the other on each path, until `end`; what did not answer 200 is a failure. */
function sendTraffic({ client }: Panel, paths: readonly string[]) {
    const seen = { asked: 0, failures: [] as string[] };
    let running = true;
    const clients = paths.map(async (path) => {
        while (running) {
            const { status, text } = await client.get(path);
            seen.asked += 1;
            if (status !== 200) {
                seen.failures.push(`${path} ${status} ${text}`);
            }
            await wait(400);
        }
    });
    const end = async () => {
        running = false;
        await Promise.all(clients);
        return seen;
    };
    return { end };
}

async function disableAndEnable({ client }: Panel, name: string, count: number): Promise<void> {
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
        expect((await client.get(`/api/plugins/${name}/${routes[name]}`)).status).to.equal(200);
    }
}

/** Declares the tests of these extensions. Two files share them, so that neither takes half of the time of all tests. */
export function hundredTimes(
    { after, before, describe, it }: ReturnType<typeof Lab.script>,
    names: readonly string[]
): void {
    describe('Each extension, disabled and enabled a hundred times in a panel', { timeout: 600_000 }, () => {
        let panel: Panel;
        let root: string;

        before(async () => {
            root = mkdtempSync(join(tmpdir(), 'portico-hundred-'));
            mkdirSync(join(root, 'files'));
            panel = await startPanel({
                driver: createFaultyEngine(),
                environment: { PORTICO_PLUGIN_DIRS: extensions }
            });
            await panel.panel.settled();
            await panel.client.put('/api/plugins/filemanager', {
                settings: { roots: [{ name: 'here', path: join(root, 'files'), roles: ['admin'] }] }
            });
        });

        after(async () => {
            await panel.close();
            rmSync(root, { recursive: true, force: true });
        });

        for (const name of names) {
            it(`fails no request elsewhere, and leaves nothing behind: ${name}`, async () => {
                const off = requiredBy[name] ?? [];
                for (const other of off) {
                    await panel.client.put(`/api/plugins/${other}`, { enabled: false });
                }
                await disableAndEnable(panel, name, 10);
                panel.lines.length = 0;
                const before = await held();
                const others = Object.entries(routes)
                    .filter(([other]) => other !== name && !off.includes(other))
                    .map(([other, path]) => `/api/plugins/${other}/${path}`);
                const traffic = sendTraffic(panel, [...others, '/api/settings']);
                await disableAndEnable(panel, name, rounds);
                const { asked, failures } = await traffic.end();
                panel.lines.length = 0;
                const after = await held(before);
                expect(failures).to.equal([]);
                expect(asked).to.be.above(rounds);
                expectNoMore(before, after);
                for (const other of off) {
                    await panel.client.put(`/api/plugins/${other}`, { enabled: true });
                }
                console.log(
                    `      ${name}: ${asked} requests elsewhere, none failed; files ${before.files} and ${after.files}, heap ${Math.round((after.heap - before.heap) / 1024)} KiB more`
                );
            });
        }
    });
}
