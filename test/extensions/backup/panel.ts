/** The whole way on a real panel: its own backup, a drill that boots it, a kill in the middle, and the restore without a panel. */
import { spawn } from 'node:child_process';
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const base = '/api/plugins/backup';
const folder = join(import.meta.dirname, '../../../extensions/backup');
const passphrase = 'a long walk by the river';

describe('backups of a panel', { timeout: 240_000 }, () => {
    let root: string;
    let panel: TestPanel;

    before(async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-backups-'));
        mkdirSync(join(root, 'extensions'));
        symlinkSync(folder, join(root, 'extensions', 'backup'));
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: join(root, 'extensions') } });
        await until(
            async () => {
                const { data } = await panel.client.get('/api/plugins');
                return (data as { name: string; state: string }[]).some(
                    ({ name, state }) => name === 'backup' && state === 'running'
                );
            },
            'the plugin to run',
            60_000
        );
    });

    after(async () => {
        await panel?.close();
        rmSync(root, { recursive: true, force: true });
    });

    const made = async (method: string, path: string, body?: unknown) => {
        const answer = await panel.client.call(method, `${base}${path}`, body === undefined ? {} : { body });
        expect(answer.code, `${method} ${path}: ${answer.text}`).to.equal(0);
        return answer.data;
    };
    const task = async (method: string, path: string, body: unknown = {}) => {
        const { id } = await made(method, path, body);
        return until(
            async () => {
                const { data } = await panel.client.get(`/api/tasks/${id}`);
                return ['succeeded', 'failed', 'cancelled'].includes(data.state as string) ? data : null;
            },
            `${path} to end`,
            120_000
        );
    };

    it('come back whole: in a drill, and by the recovery kit without a panel', async () => {
        const repository = (
            await task('POST', '/repositories', {
                name: 'disk',
                type: 'local',
                path: join(root, 'repository')
            })
        ).result.repositoryId as number;
        const { id } = await made('POST', '/plans', {
            name: 'panel',
            repositoryId: repository,
            sources: [{ type: 'panel' }]
        });
        const { id: runId } = await made('POST', `/plans/${id}/run`, {});
        const run = await until(
            async () => {
                const found = await made('GET', `/runs/${runId}`);
                return found.finishedAt === null ? null : found;
            },
            'the run to end',
            120_000
        );
        expect([run.state, run.message]).to.equal(['succeeded', null]);
        const proof = await task('POST', `/plans/${id}/drill`);
        expect(proof.state, JSON.stringify(proof.error)).to.equal('succeeded');
        expect(proof.result.panel).to.include({ booted: true, users: 1, auditChain: true });

        const kit = await made('POST', '/recovery-kit', { passphrase });
        writeFileSync(join(root, 'kit.json'), JSON.stringify(kit));
        writeFileSync(join(root, 'passphrase'), `${passphrase}\n`);
        const command = (args: readonly string[]) =>
            runCommand([
                ...args,
                '--kit',
                join(root, 'kit.json'),
                '--passphrase-file',
                join(root, 'passphrase')
            ]);
        const listed = await command(['list']);
        expect(listed.code, listed.stderr).to.equal(0);
        expect(listed.stdout).to.match(/^disk\t[0-9a-f]{8}\t/);
        const target = join(root, 'restored');
        const restored = await command(['restore', '--data-dir', target]);
        expect(restored.code, restored.stderr).to.equal(0);
        expect(readFileSync(join(target, 'portico.db')).length).to.be.above(0);
        // A backup of the panel does not hold the copy of the panel that it was made of.
        expect(existsSync(join(target, 'plugin-data/backup/1/data.db'))).to.be.true();
        expect(existsSync(join(target, 'plugin-data/backup/1/scratch/plan-1'))).to.be.false();
        expect((await command(['restore', '--data-dir', target])).code).to.equal(1);
        writeFileSync(join(root, 'passphrase'), 'another passphrase');
        const wrong = await command(['list']);
        expect([wrong.code, wrong.stderr]).to.equal([
            1,
            'portico-backup: The passphrase does not open the kit, or the kit was changed\n'
        ]);
    });
});

interface Ended {
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
}

function runCommand(args: readonly string[]): Promise<Ended> {
    const child = spawn(
        process.execPath,
        ['--conditions=portico-source', join(folder, 'bin/portico-backup.js'), ...args],
        { stdio: ['ignore', 'pipe', 'pipe'] }
    );
    const texts = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text));
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...texts })));
}
