import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { defineEntity, p } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

import { type Database, openDatabase } from '../../../../core/src/platform/database/database.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const Note = defineEntity({
    name: 'Note',
    tableName: 'notes',
    properties: { id: p.integer().primary(), text: p.string().unique() }
});
class CreateNotes extends Migration {
    override up(): void {
        this.addSql('create table notes (id integer primary key autoincrement, text text not null unique)');
    }
}

let folder: string;
let db: Database;

const open = (): Promise<Database> =>
    openDatabase({
        file: join(folder, 'x.db'),
        entities: [Note],
        migrations: [{ name: '0001-notes', class: CreateNotes }]
    });
const texts = (): string[] =>
    db
        .prepare<[], { text: string }>('select text from notes order by id')
        .all()
        .map((row) => row.text);

describe('openDatabase', () => {
    beforeEach(async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-db-'));
        db = await open();
    });

    afterEach(async () => {
        await db.close();
        rmSync(folder, { recursive: true, force: true });
    });

    it('stores and finds text with a NUL', async () => {
        const text = "a\0b' ?";
        await db.write(async ({ em }) => {
            await em.insert(Note, { text });
            await em.nativeUpdate(Note, { text }, { text: `${text}é` });
        });
        expect(texts()).to.equal([`${text}é`]);
        expect(await db.read((em) => em.count(Note, { text: { $in: ['x', `${text}é`] } }))).to.equal(1);
    });

    it('runs writes one after the other, and readers see only what is committed', async () => {
        const order: string[] = [];
        const slow = db.write(async ({ em }) => {
            await em.insert(Note, { text: 'a' });
            order.push(`inside a: ${texts().join()}`);
            await new Promise((resolve) => setTimeout(resolve, 10));
        });
        const quick = db.write(async ({ em }) => {
            await em.insert(Note, { text: 'b' });
            order.push(`inside b: ${texts().join()}`);
        });
        await Promise.all([slow, quick]);
        expect(order).to.equal(['inside a: ', 'inside b: a']);
        expect(texts()).to.equal(['a', 'b']);
        expect(await db.read((em) => em.count(Note))).to.equal(2);
    });

    it('undoes a transaction that fails, tells those who asked, and goes on with the next', async () => {
        const told: string[] = [];
        const failed = db.write(async ({ em, afterCommit, afterRollback }) => {
            afterCommit(() => told.push('commit'));
            afterRollback(() => told.push('rollback'));
            await em.insert(Note, { text: 'a' });
            throw new Error('no');
        });
        await expect(failed).to.reject('no');
        await db.write(async ({ em, afterCommit }) => {
            afterCommit(() => told.push('commit 2'));
            await em.insert(Note, { text: 'b' });
        });
        expect(told).to.equal(['rollback', 'commit 2']);
        expect(texts()).to.equal(['b']);
    });

    it('throws at a write within a write instead of waiting for itself', async () => {
        await expect(db.write(async () => db.write(async () => 1))).to.reject(TypeError, /wait for itself/);
        expect(await db.write(async () => 2)).to.equal(2);
    });

    it('never writes through a reader', async () => {
        expect(() => db.prepare("insert into notes (text) values ('x')").all()).to.throw();
        await expect(
            db.read(async (em) => {
                await em.getConnection('read').execute("insert into notes (text) values ('x')");
            })
        ).to.reject();
        expect(texts()).to.equal([]);
    });

    it('answers 50700 when the disk is full, with nothing half-written', async () => {
        const full = await db
            .write(async ({ em }) => {
                await em.insert(Note, { text: 'a' });
                throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
            })
            .catch((error: unknown) => error as { code: number; reason: string });
        expect(full).to.include({ code: 50700, reason: 'STORAGE_FULL' });
        expect(texts()).to.equal([]);
    });

    it('does not touch a database that a newer version wrote', async () => {
        await db.write(({ em }) => em.execute("insert into migrations (name) values ('9999-future')"));
        await db.close();
        await expect(open()).to.reject(Error, /newer version of the panel \(9999-future\)/);
        db = await openDatabase({
            file: join(folder, 'y.db'),
            entities: [Note],
            migrations: [{ name: '0001-notes', class: CreateNotes }]
        });
    });

    it('opens a second time without migrating again', async () => {
        await db.write(({ em }) => em.insert(Note, { text: 'kept' }));
        await db.close();
        db = await open();
        expect(texts()).to.equal(['kept']);
    });
});
