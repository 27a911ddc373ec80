import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { Audit } from '../../../../../core/src/features/audit/audit.ts';
import { verifyAuditFile } from '../../../../../core/src/features/audit/chain/verify-file.ts';
import { auditEntities, auditMigrations } from '../../../../../core/src/features/audit/entities.ts';
import { createKeyring } from '../../../../../core/src/platform/keys/keyring.ts';
import { entryOf, type HandClock, handClock, openStore, type Store } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('verify', () => {
    let store: Store;
    let audit: Audit;
    let clock: HandClock;
    let retentionDays: number;

    const headFile = (): string => join(store.folder, 'audit.head');
    const open = async (): Promise<void> => {
        audit = await Audit.open({
            db: store.db,
            keyring: store.keyring,
            headFile: headFile(),
            clock,
            log: store.log,
            retentionDays: () => retentionDays
        });
    };
    const restart = async (between: () => void = () => undefined): Promise<void> => {
        await audit.close();
        await store.db.close();
        between();
        await store.reopen().catch(() => undefined);
        await open();
    };
    const fill = async (count: number): Promise<void> => {
        await store.db.write(async (tx) => {
            for (let index = 0; index < count; index += 1) {
                await audit.record(
                    tx,
                    entryOf({ resourceId: index, after: { domain: `host-${index}.example` } })
                );
            }
        });
    };
    const tamper = (...statements: readonly string[]): void => {
        const other = new Sqlite(store.file);
        statements.forEach((sql) => other.exec(sql));
        other.close();
    };

    beforeEach(async () => {
        store = await openStore({ entities: auditEntities, migrations: auditMigrations });
        clock = handClock();
        retentionDays = 30;
        await open();
    });

    afterEach(async () => {
        await audit.close();
        await store.remove();
    });

    it('holds for an empty log, a short one and one with checkpoints', async () => {
        expect(await audit.verify()).to.equal({
            holds: true,
            entries: 0,
            first: null,
            last: null,
            checkpoints: 0,
            break: null
        });
        await fill(3);
        expect(await audit.verify()).to.equal({
            holds: true,
            entries: 3,
            first: 1,
            last: 3,
            checkpoints: 0,
            break: null
        });
        await fill(450);
        expect(await audit.verify()).to.include({ holds: true, entries: 453, last: 453, checkpoints: 4 });
    });

    it('finds an entry that was changed, in any column', async () => {
        await fill(120);
        const columns = [
            'at = at + 1',
            'actor_id = 2',
            "username = 'eve'",
            'token_id = 3',
            "plugin = 'x'",
            "action = 'read'",
            "resource = 'users'",
            "resource_id = '50'",
            "outcome = 'failure'",
            'status = 200',
            'code = 1',
            'count = 2',
            'ip = null',
            "user_agent = ''",
            "request_id = 'r-2'",
            'changes = null',
            `hash = '${'0'.repeat(64)}'`,
            "at = 'soon'",
            'at = 9e18'
        ];
        for (const column of columns) {
            tamper(
                'create table if not exists kept as select * from audit_entries where id = 51',
                `update audit_entries set ${column} where id = 51`
            );
            expect((await audit.verify()).break, column).to.include({ id: 51, reason: 'CHANGED' });
            tamper('insert or replace into audit_entries select * from kept');
            expect((await audit.verify()).holds, column).to.be.true();
        }
    });

    it('finds entries that were removed at the beginning and in the middle', async () => {
        await fill(30);
        tamper('delete from audit_entries where id between 11 and 13');
        expect((await audit.verify()).break).to.equal({
            id: 11,
            reason: 'REMOVED',
            message: 'Entries 11 to 13 are missing'
        });
        tamper('delete from audit_entries where id = 1');
        expect((await audit.verify()).break).to.equal({
            id: 1,
            reason: 'REMOVED',
            message: 'Entry 1 is missing'
        });
    });

    it('finds two entries that changed places, and one that was put in between', async () => {
        await fill(30);
        tamper(
            'update audit_entries set id = -1 where id = 9',
            'update audit_entries set id = 9 where id = 10',
            'update audit_entries set id = 10 where id = -1'
        );
        expect((await audit.verify()).break).to.include({ id: 9, reason: 'CHANGED' });
        tamper(
            'update audit_entries set id = -1 where id = 9',
            'update audit_entries set id = 9 where id = 10',
            'update audit_entries set id = 10 where id = -1'
        );
        expect((await audit.verify()).holds).to.be.true();
        tamper(
            'create table shifted as select * from audit_entries where id >= 20',
            'delete from audit_entries where id >= 20',
            'update shifted set id = id + 1',
            'insert into audit_entries select * from shifted',
            "update shifted set id = 20, action = 'forged' where id = 21",
            'insert into audit_entries select * from shifted where id = 20'
        );
        expect((await audit.verify()).break).to.include({ id: 20, reason: 'CHANGED' });
    });

    it('finds an entry that was put at the end', async () => {
        await fill(5);
        tamper(
            'create table copy as select * from audit_entries where id = 5',
            'update copy set id = 6',
            'insert into audit_entries select * from copy'
        );
        expect((await audit.verify()).break).to.include({ id: 6, reason: 'CHANGED' });
    });

    it('finds a cut tail while the panel runs and after a restart, and keeps the finding when the log goes on', async () => {
        await fill(250);
        tamper('delete from audit_entries where id > 190');
        expect((await audit.verify()).break).to.include({ id: 191, reason: 'TAIL_CUT' });
        await restart();
        expect((await audit.verify()).break).to.include({ id: 191, reason: 'TAIL_CUT' });
        await fill(40);
        await restart();
        expect((await audit.verify()).break).to.include({ id: 191, reason: 'TAIL_CUT' });
        expect(audit.get(191)).to.include({ action: 'break', resource: 'audit', outcome: 'failure' });
        expect(store.lines.some((line) => line.includes('does not go on where it ended'))).to.be.true();
    });

    it('finds a database file that was put back to an older state', async () => {
        await fill(5);
        const backup = join(store.folder, 'backup.db');
        const copy = new Sqlite(store.file);
        copy.exec(`vacuum into '${backup}'`);
        copy.close();
        await fill(5);
        await restart(() => {
            rmSync(store.file);
            copyFileSync(backup, store.file);
        });
        expect((await audit.verify()).break).to.include({ id: 6, reason: 'ROLLED_BACK' });
    });

    it('finds that the head file was removed, changed or put back', async () => {
        await fill(5);
        const old = readFileSync(headFile());
        await restart(() => rmSync(headFile()));
        expect((await audit.verify()).break).to.include({ id: 6, reason: 'HEAD_MISSING' });
        await restart(() =>
            writeFileSync(
                headFile(),
                readFileSync(headFile(), 'utf8').replace('"sequence":6', '"sequence":4')
            )
        );
        expect((await audit.verify()).break).to.include({ id: 6 });
        expect(audit.get(7).changes).to.include({
            after: {
                id: 7,
                reason: 'HEAD_INVALID',
                message: 'The head file is not ours: entries after 6 may be missing'
            }
        });
        await fill(1_200);
        await restart(() => writeFileSync(headFile(), old));
        expect(audit.get(1_208).changes).to.include({
            after: {
                id: 6,
                reason: 'HEAD_STALE',
                message: 'The head file knows 5 entries of 1207: it was put back'
            }
        });
    });

    it('takes a head file that is a crash behind for what it is', async () => {
        await fill(5);
        const old = readFileSync(headFile());
        await fill(20);
        await restart(() => writeFileSync(headFile(), old));
        expect(await audit.verify()).to.include({ holds: true, entries: 25 });
    });

    it('names a key that is not the one that the log was made with', async () => {
        await fill(80);
        await audit.close();
        const other = createKeyring(join(store.folder, 'other'));
        const found = await verifyAuditFile({ file: store.file, headFile: headFile(), keyring: other });
        expect(found.break).to.include({ id: 1, reason: 'WRONG_KEY' });
        await open();
    });

    it('finds a forged checkpoint, and a chain that was made anew around a signed one', async () => {
        await fill(220);
        tamper('update audit_checkpoints set at = at + 1 where sequence = 200');
        expect((await audit.verify()).break).to.include({ id: 200, reason: 'CHECKPOINT_INVALID' });
        tamper(
            'update audit_checkpoints set at = at - 1 where sequence = 200',
            'update audit_checkpoints set sequence = 199 where sequence = 200'
        );
        expect((await audit.verify()).break).to.include({ id: 199, reason: 'CHECKPOINT_INVALID' });
    });

    it('stays valid when old entries are pruned, and sees what goes beyond', async () => {
        await fill(600);
        clock.time += 20 * 86_400_000;
        await fill(10);
        expect(await audit.prune()).to.equal(0);
        retentionDays = 10;
        expect(await audit.prune()).to.equal(600);
        expect(await audit.verify()).to.include({ holds: true, entries: 11, first: 601, last: 611 });
        expect(audit.get(611)).to.include({ action: 'prune', resource: 'audit' });
        await restart();
        expect(await audit.verify()).to.include({ holds: true, first: 601 });
        tamper('delete from audit_entries where id = 601');
        expect((await audit.verify()).break).to.equal({
            id: 601,
            reason: 'REMOVED',
            message: 'Entry 601 is missing'
        });
        tamper('delete from audit_checkpoints');
        expect((await audit.verify()).break).to.include({ id: 1, reason: 'REMOVED' });
    });

    it('does not prune evidence', async () => {
        await fill(10);
        tamper("update audit_entries set username = 'eve' where id = 4");
        clock.time += 400 * 86_400_000;
        await fill(1);
        await expect(audit.prune()).to.reject(
            'Entry 4 of the audit log is not as it was written; nothing from there on is pruned'
        );
        expect((await audit.verify()).break).to.include({ id: 4, reason: 'CHANGED' });
    });

    it('verifies a file without a panel', async () => {
        await fill(130);
        await audit.close();
        expect(
            await verifyAuditFile({ file: store.file, headFile: headFile(), keyring: store.keyring })
        ).to.include({ holds: true, entries: 130 });
        tamper('delete from audit_entries where id > 125');
        expect(
            (await verifyAuditFile({ file: store.file, headFile: headFile(), keyring: store.keyring })).break
        ).to.include({ id: 126, reason: 'TAIL_CUT' });
        rmSync(headFile());
        expect(
            (await verifyAuditFile({ file: store.file, headFile: headFile(), keyring: store.keyring })).break
        ).to.include({ id: 126, reason: 'HEAD_MISSING' });
        await open();
    });

    it('gives a rolled back transaction no place in the chain', async () => {
        await fill(3);
        await expect(
            store.db.write(async (tx) => {
                await audit.record(tx, entryOf());
                await audit.record(tx, entryOf());
                throw new Error('no');
            })
        ).to.reject('no');
        expect(audit.head().sequence).to.equal(3);
        await Promise.all([fill(2), audit.recordAlone(entryOf()), audit.recordAlone(entryOf())]);
        expect(await audit.verify()).to.include({ holds: true, entries: 7 });
    });

    it('does not hold the event loop while it walks', async () => {
        await fill(4_000);
        let longest = 0;
        let last = performance.now();
        let walking = true;
        const measured = (async () => {
            while (walking) {
                await new Promise((resolve) => setImmediate(resolve));
                longest = Math.max(longest, performance.now() - last);
                last = performance.now();
            }
        })();
        const turns = performance.now();
        await audit.verify();
        walking = false;
        await measured;
        expect(longest).to.be.below(Math.max(50, (performance.now() - turns) / 2));
    });
});
