import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ServicesRig } from '../../support/machine/services.ts';
import type { Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { ended } from '../../support/plugins/panel.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { askEngine, base, hasAccount, withoutPhp } from './rig.ts';
import { makeRelease } from './stand-in.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutPhp, it);

const limitMs = 120_000;
const release = '7.9';
const name = `k${process.pid}`;

let top: string;
let standIn: Disposable;
let panel: PanelProcess;
let client: Client;

const sites = async () =>
    (await client.get(`${base}/sites`)).data as { id: number; state: string; release: string }[];
const page = async (): Promise<string> => (await askEngine(panel.httpPort, `${name}.test`, '/')).text;

/** Kills the panel as a power failure would, and starts it again. */
async function killed(): Promise<void> {
    await panel.end('SIGKILL');
    await panel.start();
    client = await panel.login();
    await until(async () => (await client.get(`${base}/sites`)).status === 200);
}

async function end(): Promise<void> {
    await new ServicesRig(panel.dataDir).end();
    await panel.close();
    standIn[Symbol.dispose]();
    if (hasAccount(`php-${name}`)) {
        execFileSync('userdel', ['--', `php-${name}`]);
    }
    rmSync(top, { recursive: true, force: true });
}

describe('Sites of a panel that is killed', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutPhp !== undefined) {
            return;
        }
        top = mkdtempSync(join(tmpdir(), 'portico-php-killed-'));
        chmodSync(top, 0o755);
        mkdirSync(join(top, 'plugins'));
        const extension = fileURLToPath(new URL('../../../extensions/php', import.meta.url));
        execFileSync('ln', ['-s', extension, join(top, 'plugins', 'php')]);
        standIn = makeRelease(release);
        panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: join(top, 'plugins') } });
        try {
            await panel.start();
            client = await panel.login();
            await client.put('/api/plugins/php', {
                settings: { sitesFolder: join(top, 'www'), runFolder: join(top, 'run') }
            });
        } catch (error) {
            await end();
            throw error;
        }
    });

    after({ timeout: limitMs }, async () => {
        if (panel !== undefined) {
            await end();
        }
    });

    real(
        'are taken back whole when they were being made, and are as they were when they were being switched',
        async () => {
            const body = { name, domain: `${name}.test`, release: '8.2' };
            await client.post(`${base}/sites`, body);
            await until(() => hasAccount(`php-${name}`));
            await killed();
            expect(await sites()).to.equal([]);
            expect(hasAccount(`php-${name}`)).to.be.false();
            expect(existsSync(join(top, 'www', name))).to.be.false();
            expect((await client.get('/api/hosts')).data).to.equal([]);

            const made = await ended(client, await client.post(`${base}/sites`, body));
            expect(made.state, JSON.stringify(made.error)).to.equal('succeeded');
            const { siteId: id } = made.result as { siteId: number };
            const script = join(top, 'www', name, 'public', 'index.php');
            writeFileSync(script, `<?php echo ini_get('user_agent') === '' ? 'old' : 'new';`);
            chmodSync(script, 0o644);
            expect(await page()).to.equal('old');
            await client.post(`${base}/sites/${id}/switch`, { release, percent: 100, observeSeconds: 600 });
            await until(
                async () => (await client.get(`${base}/sites/${id}/switch`)).data.state === 'observing'
            );
            await until(async () => (await page()) === 'new');

            await panel.end('SIGKILL');
            expect(await page()).to.equal('new');
            await killed();
            expect(await page()).to.equal('old');
            expect((await client.get(`${base}/sites/${id}/switch`)).data).to.include({
                state: 'reverted',
                to: release
            });
            const [site] = await sites();
            expect(site).to.include({ state: 'running', release: '8.2' });
            const service = (await client.get('/api/plugins/php')).data.services as { name: string }[];
            expect(service.map((each) => each.name)).to.equal([`site-${id}`]);
            expect((await client.delete(`${base}/sites/${id}?deleteFiles=true`)).status).to.equal(200);
            expect(hasAccount(`php-${name}`)).to.be.false();
        }
    );
});
