import { execFileSync } from 'node:child_process';
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { BackupEntry, BackupItem, Outcome } from '@portico/sdk';
import Sqlite from 'better-sqlite3';

import { checkDataFolder } from '../../../core/src/cli/data/check-folder.ts';
import { Rehearsals } from '../../../core/src/composition/rehearsals/rehearsals.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { hashesOf } from '../../support/plugins/panel.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const never = new AbortController().signal;

describe('answerBackups', { timeout: 120_000 }, () => {
    let at: TestPanel;
    let scratch: string;
    let folder: string;

    before(async () => {
        at = await startPanel();
        scratch = mkdtempSync(join(at.config.dataDir, '..', 'scratch-'));
        folder = join(scratch, 'panel');
        const own = join(at.config.dataDir, 'plugin-data', 'notes', '1');
        mkdirSync(own, { recursive: true });
        writeFileSync(join(own, 'kept.txt'), 'of a plugin');
        const data = new Sqlite(join(own, 'data.db'));
        data.exec(
            "pragma journal_mode = wal; create table notes (text text); insert into notes values ('one')"
        );
        data.close();
        const row = ['notes', '@acme/notes', 1, '', '1.0.0', 0, 1, 0, 0];
        // In a process of its own: closing the file in this one would drop the panel's locks on it.
        execFileSync(
            process.execPath,
            [
                '--input-type=module',
                '--eval',
                `import Sqlite from 'better-sqlite3';
                new Sqlite(process.argv[1]).prepare('insert into plugin_data (name, package, n, folder, version, created_at, current, pending, accepted) values (?, ?, ?, ?, ?, ?, ?, ?, ?)').run(...JSON.parse(process.argv[2]))`,
                join(at.config.dataDir, 'portico.db'),
                JSON.stringify(row)
            ],
            { cwd: import.meta.dirname }
        );
    });

    after(async () => {
        await at.close(); // the scratch folder lies beside the data folder
    });

    let hostsInCopy = 0;

    const ask = async <T>(hook: string, payload: unknown): Promise<Outcome<T>> => {
        const [outcome] = await Array.fromAsync(
            at.panel.hooks.host.collect(hook, async () => payload, { only: ['panel'] })
        );
        return outcome as Outcome<T>;
    };

    it('names and gives database, keys, plugins and their data, while the panel is written to', async () => {
        const listed = await ask<readonly BackupEntry[]>('backup.list', {});
        const names = listed.ok ? listed.result.map(({ name }) => name) : [];
        expect(names).to.include(['database', 'audit-head', 'keys', 'data-notes']);
        let writing = true;
        let written = 0;
        const writer = (async () => {
            while (writing) {
                const { status } = await at.client.post('/api/hosts', {
                    domain: `site-${written}.example`,
                    upstream: '127.0.0.1:1'
                });
                expect(status).to.equal(201);
                written += 1;
            }
        })();
        await until(() => written > 3, 'some hosts');
        for (let round = 0; round < 3; round += 1) {
            rmSync(folder, { recursive: true, force: true });
            mkdirSync(folder, { recursive: true, mode: 0o700 });
            const before = written;
            const given = await ask<readonly BackupItem[]>('backup.collect', { folder });
            const enough = written;
            expect(given.ok, JSON.stringify(given)).to.be.true();
            expect(given.ok && given.result.map(({ name }) => name)).to.equal(names);
            const db = new Sqlite(join(folder, 'portico.db'), { readonly: true });
            const { n } = db.prepare<[], { n: number }>('select count(*) as n from host').get() ?? { n: -1 };
            db.close();
            hostsInCopy = n;
            expect(n).to.be.between(before - 1, enough + 2);
            const checks = await checkDataFolder({ ...at.config, dataDir: folder });
            expect(checks.filter(({ state }) => state === 'fail')).to.equal([]);
        }
        writing = false;
        await writer;
        const copied = join(folder, 'plugin-data', 'notes', '1');
        expect(readFileSync(join(copied, 'kept.txt'), 'utf8')).to.equal('of a plugin');
        expect(statSync(join(folder, 'keys', 'master')).mode & 0o777).to.equal(0o600);
        expect(JSON.parse(readFileSync(join(folder, 'portico-panel.json'), 'utf8'))).to.include({
            format: 1,
            items: names
        });
    });

    it('gives single items, refuses others, and never restores under itself', async () => {
        const part = join(scratch, 'part');
        mkdirSync(part);
        const given = await ask<readonly BackupItem[]>('backup.collect', { folder: part, only: ['keys'] });
        expect(given.ok && given.result).to.equal([
            { name: 'keys', title: 'Keys that open what is sealed', path: 'keys' }
        ]);
        expect(readdirSync(part).sort()).to.equal(['keys', 'portico-panel.json']);
        expect((await ask('backup.collect', { folder: part, only: ['none'] })).ok).to.be.false();
        const restored = await ask<readonly { readonly ok: boolean }[]>('backup.restore', {
            folder,
            version: '1.0.0',
            items: [{ name: 'database', title: '', path: join(folder, 'portico.db') }]
        });
        expect(restored.ok && restored.result[0]?.ok).to.be.false();
    });

    it('boots what it gave, changes nothing in it, and leaves no process and no copy', async () => {
        const before = hashesOf(folder);
        const rehearsals = new Rehearsals(at.config.dataDir);
        const found = await rehearsals.rehearse(folder, never);
        expect(found).to.include({ booted: true, message: null, users: 1, auditChain: true });
        expect(found.hosts).to.equal(hostsInCopy);
        expect(found.readyMs).to.be.above(0);
        expect(hashesOf(folder)).to.equal(before);
        const left = (): readonly string[] =>
            readdirSync(at.config.dataDir).filter((name) => name.startsWith('rehearsal-'));
        expect(left()).to.equal([]);

        const controller = new AbortController();
        const cut = rehearsals.rehearse(folder, controller.signal);
        const waiting = rehearsals.rehearse(folder, controller.signal);
        setTimeout(() => controller.abort(new Error('enough')), 300);
        const ends = await Promise.allSettled([cut, waiting]);
        expect(ends.map((end) => (end as PromiseRejectedResult).reason?.message)).to.equal([
            'enough',
            'enough'
        ]);
        expect(left()).to.equal([]);

        writeFileSync(join(folder, 'portico.db'), 'not a database');
        const broken = await rehearsals.rehearse(folder, never);
        expect(broken).to.include({ booted: false, hosts: 0, auditChain: false });
        expect(broken.message).to.contain('portico.db');
        expect((await rehearsals.rehearse(join(scratch, 'none'), never)).booted).to.be.false();

        mkdirSync(join(at.config.dataDir, 'rehearsal-killed'));
        new Rehearsals(at.config.dataDir);
        expect(existsSync(join(at.config.dataDir, 'rehearsal-killed'))).to.be.false();
    });
});
