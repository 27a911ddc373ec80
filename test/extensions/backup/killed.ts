/** A panel that is killed in the middle of a backup, while restic holds its lock. */
import { randomBytes } from 'node:crypto';
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Client } from '../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { ended } from '../../support/plugins/panel.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const base = '/api/plugins/backup';
const lacks = ['/usr/bin/restic', '/usr/local/bin/restic'].some((path) => existsSync(path))
    ? undefined
    : 'restic is not installed';

/** Whether restic works for the panel with this data folder. */
function isWorking(dataDir: string): boolean {
    return readdirSync('/proc')
        .filter((each) => /^\d+$/.test(each))
        .some((pid) => {
            try {
                const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
                return name === 'restic' && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(dataDir);
            } catch {
                return false; // It has ended meanwhile.
            }
        });
}

describe('backups of a panel that is killed', { timeout: 180_000 }, () => {
    let top: string;
    let panel: PanelProcess;
    let client: Client;

    before({ timeout: 120_000 }, async () => {
        if (lacks !== undefined) {
            return;
        }
        top = mkdtempSync(join(tmpdir(), 'portico-backup-killed-'));
        ['plugins', 'site'].forEach((each) => mkdirSync(join(top, each)));
        symlinkSync(join(import.meta.dirname, '../../../extensions/backup'), join(top, 'plugins/backup'));
        panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: join(top, 'plugins') } });
        await panel.start();
        client = await panel.login();
    });
    after({ timeout: 120_000 }, async () => {
        if (panel !== undefined) {
            await panel.close();
            rmSync(top, { recursive: true, force: true });
        }
    });

    itUnless(lacks, it)(
        'are interrupted, leave neither lock nor program, and succeed the next time',
        async () => {
            const repository = join(top, 'repository');
            const locks = (): readonly string[] => readdirSync(join(repository, 'locks'));
            // So slow that it is under way when the panel is killed.
            const made = await ended(
                client,
                await client.post(`${base}/repositories`, {
                    name: 'disk',
                    type: 'local',
                    path: repository,
                    uploadKiBps: 64
                })
            );
            expect(made.state, JSON.stringify(made.error)).to.equal('succeeded');
            const repositoryId = (made.result as { repositoryId: number }).repositoryId;
            writeFileSync(join(top, 'site/data'), randomBytes(24 * 1024 * 1024));
            const { id } = (
                await client.post(`${base}/plans`, {
                    name: 'site',
                    repositoryId,
                    sources: [{ type: 'folder', path: join(top, 'site') }],
                    retries: 0
                })
            ).data as { id: number };
            const run = (await client.post(`${base}/plans/${id}/run`, {})).data as { id: number };
            await until(() => locks().length > 0 && isWorking(panel.dataDir));
            await panel.end('SIGKILL');
            await until(() => !isWorking(panel.dataDir));

            await panel.start();
            client = await panel.login();
            const read = async (each: number) => (await client.get(`${base}/runs/${each}`)).data;
            await until(
                async () => (await client.get(`${base}/runs/${run.id}`)).data?.state === 'interrupted'
            );
            expect((await client.get(`${base}/plans/${id}`)).data.lastSuccessAt).to.be.null();
            await client.put(`${base}/repositories/${repositoryId}`, { uploadKiBps: null });
            const next = (await client.post(`${base}/plans/${id}/run`, {})).data as { id: number };
            await until(async () => (await read(next.id)).finishedAt !== null, 'the next run', 60_000);
            const after_ = await read(next.id);
            expect([after_.state, after_.message]).to.equal(['succeeded', null]);
            expect(locks()).to.equal([]);
            const snapshots = await client.get(`${base}/repositories/${repositoryId}/snapshots`);
            expect(snapshots.data.length).to.equal(1);
            const check = await ended(
                client,
                await client.post(`${base}/repositories/${repositoryId}/check`, {})
            );
            expect(check.state, JSON.stringify(check.error)).to.equal('succeeded');
        }
    );
});
