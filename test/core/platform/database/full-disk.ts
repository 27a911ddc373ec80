import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { defineEntity, p } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

import {
    type Database,
    type DatabaseOptions,
    openDatabase,
    type Transaction
} from '../../../../core/src/platform/database/database.ts';
import { Writer } from '../../../../core/src/platform/database/writer.ts';
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../../../support/machine/small-disk.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;
const onSmallDisk = itUnless(noSmallDisk, it);

const Note = defineEntity({
    name: 'Note',
    tableName: 'notes',
    properties: { id: p.integer().primary(), text: p.string() }
});
class CreateNotes extends Migration {
    override up(): void {
        this.addSql('create table notes (id integer primary key autoincrement, text text not null)');
    }
}

const megabyte = 1_048_576;
const long = 'x'.repeat(200_000);

let root: string;
let disk: SmallDisk | null;
let db: Database;

const open = (folder: string, options: Partial<DatabaseOptions> = {}): Promise<Database> =>
    openDatabase({
        file: join(folder, 'x.db'),
        entities: [Note],
        migrations: [{ name: '0001-notes', class: CreateNotes }],
        ...options
    });
const insert = (text: string): Promise<unknown> => db.write(({ em }) => em.insert(Note, { text }));
/** A write that must answer at once, whatever it answers. */
const promptly = <T>(work: Promise<T>): Promise<T> =>
    Promise.race([
        work,
        wait(5_000, null, { ref: false }).then((): never => {
            throw new Error('The write hangs');
        })
    ]);
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    promptly(work).then(
        () => null,
        (error: unknown) => error
    );
const count = (): number => db.prepare<[], { n: number }>('select count(*) as n from notes').get()?.n ?? -1;
/** Limits the size of this process's files: a write past it fails with EFBIG, which SQLite reports as SQLITE_IOERR_WRITE. */
const limitFiles = (bytes: number | 'unlimited'): void =>
    void execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`]);

describe('openDatabase on a disk that takes no more', () => {
    beforeEach(() => {
        root = mkdtempSync(join(tmpdir(), 'portico-full-'));
        disk = null;
    });

    afterEach(async () => {
        disk?.free();
        try {
            await promptly(db.close());
        } finally {
            disk?.close();
            rmSync(root, { recursive: true, force: true });
        }
    });

    for (const strictReads of [false, true]) {
        onSmallDisk(
            `answers 50700 to each write, and writes again once there is space (strictReads: ${strictReads})`,
            async () => {
                disk = mountSmallDisk(join(root, 'disk'), 2 * megabyte);
                db = await open(disk.folder, { strictReads });
                await insert('before');
                disk.fill();
                for (let round = 0; round < 3; round += 1) {
                    expect(await failureOf(insert(long))).to.include({ code: 50700, reason: 'STORAGE_FULL' });
                    expect(count()).to.equal(1);
                }
                disk.free();
                await promptly(insert(long));
                expect(count()).to.equal(2);
            }
        );
    }

    onSmallDisk('keeps nothing of a transaction that goes on after SQLite has ended it', async () => {
        disk = mountSmallDisk(join(root, 'disk'), 2 * megabyte);
        // With so small a cache a long row goes to the disk at once, and not only at the commit.
        db = await open(disk.folder, { cacheKiB: 40 });
        await insert('before');
        const writer = new Writer();
        const sql = 'insert into notes (text) values (?)';
        for (const late of [
            ({ em }) => em.insert(Note, { text: 'late' }),
            async (tx) => (await writer.statement(tx, sql)).run('late'),
            () => Promise.resolve(),
            ({ em }) => em.transactional((nested) => nested.insert(Note, { text: 'late' }))
        ] satisfies ((tx: Transaction) => Promise<unknown>)[]) {
            const outcomes: unknown[] = [];
            disk.fill();
            outcomes.push(
                await failureOf(
                    db.write(async (tx) => {
                        outcomes.push(await failureOf(tx.em.insert(Note, { text: long })));
                        disk?.free();
                        await late(tx);
                    })
                )
            );
            expect(outcomes[0]).to.include({ code: 'SQLITE_FULL' });
            expect(outcomes[1]).to.be.an.error();
            expect(count()).to.equal(1);
        }
        await promptly(insert('after'));
        expect(count()).to.equal(2);
    });

    it('answers 50700 when a write fails in another way, and writes again when it works', async () => {
        db = await open(root);
        await insert('before');
        const ignore = (): void => undefined;
        process.on('SIGXFSZ', ignore);
        try {
            limitFiles(65_536);
            for (let round = 0; round < 3; round += 1) {
                expect(await failureOf(insert(long))).to.include({ code: 50700, reason: 'STORAGE_FULL' });
                expect(count()).to.equal(1);
            }
        } finally {
            limitFiles('unlimited');
            process.off('SIGXFSZ', ignore);
        }
        await promptly(insert(long));
        expect(count()).to.equal(2);
    });
});
