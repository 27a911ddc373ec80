import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    panelFolder,
    portico,
    removeFolder,
    type RunningPanel,
    startPanel
} from '../../support/panel/console.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('commands made from the API', { timeout: 180_000 }, () => {
    let dataDir: string;
    let panel: RunningPanel;
    let root: string;
    const run = (args: readonly string[], input = ''): ReturnType<typeof portico> =>
        portico([...args, '--data-dir', dataDir], { input });
    const json = async (args: readonly string[], input?: string): Promise<unknown> => {
        const { code, stdout, stderr } = await run([...args, '--json'], input);
        expect(code, stderr).to.equal(0);
        return JSON.parse(stdout);
    };

    before(async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-cli-api-'));
        dataDir = await panelFolder();
        panel = await startPanel(dataDir);
    });
    after(async () => {
        await panel.stop();
        removeFolder(dataDir);
        rmSync(root, { recursive: true, force: true });
    });

    it('list their actions and what these take', async () => {
        const { code, stdout } = await run(['user']);
        expect(code).to.equal(0);
        expect(stdout).to.match(/^update <id> .*\[role=\]/m);
        expect(stdout).to.contain('    Create a user');
        expect(await run(['engine', 'nonsense'])).to.include({ code: 2 });
        expect((await run(['role', 'read'])).stderr).to.contain(
            '<name> is missing. It is: portico role read <name>'
        );
    });

    it('create, change, list and remove, and pass on what the panel refuses', async () => {
        const made = (await json(
            ['user', 'create', 'username=bob', 'role=viewer', '--input', '-'],
            JSON.stringify({ password: 'a quiet harbour at dusk' })
        )) as { id: number };
        expect(await json(['user', 'update', String(made.id), 'role=operator', 'disabled=true'])).to.include({
            role: 'operator',
            disabled: true
        });
        expect((await run(['user', 'list', 'q=bob'])).stdout).to.match(
            /^ID +USERNAME[\s\S]*\n\d+ +bob +operator/m
        );
        const refused = await run(['user', 'update', String(made.id), 'role=nonsense']);
        expect([refused.code, refused.stdout]).to.equal([1, '']);
        const typed = await run([
            'user',
            'create',
            'username=eve',
            'role=viewer',
            'password=a quiet harbour at dusk'
        ]);
        expect(typed.code).to.equal(2);
        expect(typed.stderr).to.contain('password is secret');
        expect((await run(['user', 'remove', String(made.id)])).code).to.equal(0);
        expect(await json(['user', 'list', 'q=bob'])).to.equal([]);
    });

    it('reads settings, the engine and its log', async () => {
        expect(await json(['setting', 'updateOne', 'audit.retentionDays', 'value=90'])).to.include({
            value: 90
        });
        expect(await json(['engine', 'drift'])).to.include('drifted');
        const { code, stderr } = await run(['logs', '--lines', '2']);
        expect(code, stderr).to.equal(0);
    });

    it('copies the panel while it runs, as a folder that can be restored', async () => {
        const [backup, restored] = [join(root, 'backup'), join(root, 'restored')];
        const { items } = (await json(['data', 'backup', backup])) as { items: string[] };
        expect(items).to.include(['database', 'audit-head', 'keys']);
        expect((await run(['data', 'backup', backup])).code).to.equal(2);
        expect((await portico(['data', 'check', backup])).code).to.equal(0);
        expect((await portico(['data', 'restore', backup, '--data-dir', restored])).code).to.equal(0);
        expect(existsSync(join(restored, 'portico.db'))).to.be.true();
        expect((await run(['audit', 'verify'])).code).to.equal(0);
    });

    it('says plainly that no panel runs', async () => {
        const folder = await panelFolder();
        try {
            const { code, stderr } = await portico(['host', 'list', '--data-dir', folder]);
            expect([code, stderr]).to.equal([
                1,
                `portico: No panel runs on ${folder}. Start it first: portico start\n`
            ]);
        } finally {
            removeFolder(folder);
        }
    });
});
