/** A panel that is killed in the middle of a backup, and of a check, a drill and a restore, while restic holds its locks. */
import { randomBytes } from 'node:crypto';
import {
    cpSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    renameSync,
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

/** How many programs restic work for the panel with this data folder. */
function working(dataDir: string): number {
    return readdirSync('/proc')
        .filter((each) => /^\d+$/.test(each))
        .filter((pid) => {
            try {
                const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
                return name === 'restic' && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(dataDir);
            } catch {
                return false; // It has ended meanwhile.
            }
        }).length;
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

    const at = () => `${base}/repositories/${repositoryId}`;
    /** Not those that restic was about to write: no program takes them for locks. */
    const locks = (): readonly string[] =>
        ['repository', 'another']
            .map((name) => join(top, name, 'locks'))
            .filter((folder) => existsSync(folder))
            .flatMap((folder) => readdirSync(folder))
            .filter((name) => !name.includes('-tmp-'));
    const data = () => join(top, 'site/data');
    const content = randomBytes(8 * 1024 * 1024);
    let repositoryId: number;
    let planId: number;

    const make = async (name: string, more: object): Promise<number> => {
        const task = await ended(
            client,
            await client.post(`${base}/repositories`, {
                ...{ name, type: 'local', path: join(top, name), password: 'correct horse', ...more }
            })
        );
        expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
        return (task.result as { repositoryId: number }).repositoryId;
    };
    const startAgain = async (): Promise<void> => {
        await panel.end('SIGKILL');
        await until(() => working(panel.dataDir) === 0, 'the end of restic');
        await panel.start();
        client = await panel.login();
    };
    const run = async () => {
        const { id } = (await client.post(`${base}/plans/${planId}/run`, {})).data as { id: number };
        return id;
    };

    itUnless(lacks, it)(
        'are interrupted, leave neither lock nor program, and succeed the next time',
        async () => {
            // So slow that it is under way when the panel is killed.
            repositoryId = await make('repository', { uploadKiBps: 64 });
            writeFileSync(data(), content);
            const plan = await client.post(`${base}/plans`, {
                name: 'site',
                repositoryId,
                sources: [{ type: 'folder', path: join(top, 'site') }],
                retries: 0
            });
            planId = plan.data.id as number;
            const cut = await run();
            await until(() => locks().length > 0 && working(panel.dataDir) > 0);
            await startAgain();

            const read = async (each: number) => (await client.get(`${base}/runs/${each}`)).data;
            await until(async () => (await read(cut))?.state === 'interrupted');
            expect((await client.get(`${base}/plans/${planId}`)).data.lastSuccessAt).to.be.null();
            await client.put(at(), { uploadKiBps: null });
            const next = await run();
            await until(async () => (await read(next)).finishedAt !== null, 'the next run');
            const after_ = await read(next);
            expect([after_.state, after_.message]).to.equal(['succeeded', null]);
            await until(() => locks().length === 0, 'the end of the lock');
            expect((await client.get(`${at()}/snapshots`)).data.length).to.equal(1);
        }
    );

    itUnless(lacks, it)(
        'lose a check, a drill and a restore, of which nothing is left, and which succeed the next time',
        async () => {
            // A check keeps others from its repository: it has one of its own.
            cpSync(join(top, 'repository'), join(top, 'another'), { recursive: true });
            const other = await make('another', { mode: 'open' });
            for (const id of [repositoryId, other]) {
                await client.put(`${base}/repositories/${id}`, { downloadKiBps: 64 });
            }
            writeFileSync(data(), 'of today');
            const [{ id: snapshot }] = (await client.get(`${at()}/snapshots`)).data as [{ id: string }];
            const works = {
                check: () => client.post(`${base}/repositories/${other}/check`, { readPercent: 100 }),
                drill: () => client.post(`${base}/plans/${planId}/drill`, {}),
                restore: () =>
                    client.post(`${at()}/snapshots/${snapshot}/restore`, {
                        items: [{ path: data() }],
                        inPlace: true,
                        conflict: 'overwrite'
                    })
            };
            const begun = [await works.check(), await works.drill(), await works.restore()];
            await until(() => locks().length === 3 && working(panel.dataDir) === 3, 'all of them');
            // It found the repository locked: that says nothing about what is in it.
            const refused = await ended(client, await client.post(`${at()}/check`, {}));
            expect(refused.error).to.include({ code: 40951 });
            await panel.end('SIGKILL');
            await until(() => working(panel.dataDir) === 0, 'the end of restic');
            // As a restore leaves it that is killed while it puts a file in the place of another one.
            renameSync(data(), join(top, 'site/.portico-restore-abc-0.old'));
            writeFileSync(data(), 'half');
            const own = join(panel.dataDir, 'plugin-data/backup/1');
            writeFileSync(
                join(own, 'in-place.json'),
                JSON.stringify({ id: 'abc', paths: [data().slice(1)] })
            );
            await startAgain();

            for (const { data: task } of begun) {
                const { state, error } = (await client.get(`/api/tasks/${task.id}`)).data;
                expect([state, error.code]).to.equal(['failed', 50300]);
            }
            await until(() => locks().length === 0, 'the end of the locks');
            expect(readFileSync(data(), 'utf8')).to.equal('of today');
            expect(readdirSync(join(top, 'site'))).to.equal(['data']);
            expect((await client.get(`${base}/drills`)).data).to.equal([]);
            expect(readdirSync(join(own, 'scratch'))).to.equal([]);
            for (const id of [repositoryId, other]) {
                const { data: row } = await client.get(`${base}/repositories/${id}`);
                expect(row.lastCheck).to.be.null();
                await client.put(`${base}/repositories/${id}`, { downloadKiBps: null });
            }
            for (const [name, work] of Object.entries(works)) {
                // While the start removes locks, a repository is in use.
                const accepted = await until(async () => {
                    const answer = await work();
                    return answer.status === 202 && answer;
                });
                const task = await ended(client, accepted);
                expect([name, task.state, task.error]).to.equal([name, 'succeeded', null]);
            }
            expect(readFileSync(data()).equals(content)).to.be.true();
            expect(locks()).to.equal([]);
        }
    );
});
