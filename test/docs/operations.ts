import { execFile } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { defaultTiming } from '../../core/src/engine/caddy/timing.ts';
import { keptRevisions } from '../../core/src/engine/revisions/revisions.ts';
import { blocksOf, readPage, root } from '../support/docs/markdown.ts';
import { Client } from '../support/panel/client.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { itUnless } from '../support/skip.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const page = readPage('docs/operations.md');
const analyze = '/usr/bin/systemd-analyze';

describe('docs/operations.md', { timeout: 120_000 }, () => {
    let folder: string;
    let panel: TestPanel | null = null;

    beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-docs-'));
        chmodSync(folder, 0o755);
    });

    afterEach(async () => {
        await panel?.close();
        panel = null;
        rmSync(folder, { recursive: true, force: true });
    });

    itUnless(existsSync(analyze) ? undefined : 'there is no systemd-analyze', it)(
        'shows a unit that systemd finds nothing wrong with',
        async () => {
            const unit = blocksOf(page).find(({ name }) => name === 'portico.service')?.text ?? '';
            expect(unit)
                .to.include('ExecStart=/opt/portico/node_modules/.bin/node core/bin/portico.js start\n')
                .and.include('KillMode=process\n');
            const file = join(folder, 'portico.service');
            writeFileSync(file, unit.replaceAll('/opt/portico', root.replace(/\/$/, '')));
            const { stdout, stderr } = await promisify(execFile)(analyze, ['verify', file]);
            expect(
                `${stdout}${stderr}`.split('\n').filter((line) => line.includes('portico.service'))
            ).to.equal([]);
        }
    );

    it('makes a backup by a copy: at another path it is a panel with everything, and the engine serves', async () => {
        const [original, copy] = [join(folder, 'data'), join(folder, 'restored')];
        panel = await startPanel({ dataDir: original });
        const body = {
            domain: 'kept.example',
            type: 'redirect',
            redirect: { to: 'https://elsewhere.example', code: 302, keepPath: false }
        };
        expect((await panel.client.post('/api/hosts', body)).data).to.include({ state: 'applied' });
        await panel.close();
        cpSync(original, copy, { recursive: true, preserveTimestamps: true });
        rmSync(original, { recursive: true });

        panel = await startPanel({ dataDir: copy });
        const { data } = await panel.client.get('/api/hosts');
        expect(data).to.have.length(1);
        expect(data[0]).to.include({ domain: 'kept.example', state: 'applied', stateMessage: null });
        expect((await panel.client.get('/api/proxyengine/status')).data).to.include({
            state: 'running',
            message: null
        });
        expect((await panel.client.get('/api/audit/verify')).data).to.include({ holds: true });
        const { status, headers } = await new Client(panel.httpPort).get('/', {
            headers: { host: 'kept.example' }
        });
        expect({ status, to: headers.location }).to.equal({ status: 302, to: 'https://elsewhere.example' });
    });

    it('says the numbers as they are', () => {
        expect(page)
            .to.include(`last ${keptRevisions} changes`)
            .and.include(
                `after ${defaultTiming.backoffMs / 1000} s at first and at most every ${defaultTiming.backoffCapMs / 1000} s`
            );
    });
});
