import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { EntitySchema } from '@mikro-orm/core';
import type { Migration } from '@portico/sdk';

import { openPluginDatabase } from '../../../../core/src/plugins/runtime/database.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('openPluginDatabase', () => {
    let root: string;
    before(() => {
        root = mkdtempSync(join(tmpdir(), 'portico-plugin-db-'));
    });
    after(() => rmSync(root, { recursive: true, force: true }));

    const open = async (...migrations: readonly Migration[]): Promise<readonly string[]> => {
        const db = await openPluginDatabase({ dataDir: root, entities: [], migrations });
        try {
            const rows = await db.read((em) =>
                em.execute<{ name: string }[]>("select name from pragma_table_info('notes')")
            );
            return rows.map(({ name }) => name);
        } finally {
            await db.close();
        }
    };

    it('refuses a migration that was changed after it ran, before a newer one runs', async () => {
        const first = { name: '1', up: ['create table notes (id integer primary key)'] };
        const second = { name: '2', up: ['alter table notes add column text text'] };
        const changed = { name: '1', up: ['create table notes (id integer primary key, text text)'] };
        expect(await open(first)).to.equal(['id']);
        expect(await open(first)).to.equal(['id']);
        await expect(open(changed, second)).to.reject(
            'The migration 1 was changed after it ran on these data, and it does not run again: leave it as it was, and add another one'
        );
        expect(await open(first, second)).to.equal(['id', 'text']);
        await expect(open(changed, second)).to.reject(/The migration 1 was changed/);
        await expect(open(first, { ...second, up: [] })).to.reject(/The migration 2 was changed/);
    });

    it('leaves no entity behind, however often it is opened', async () => {
        const first = { name: '1', up: ['create table notes (id integer primary key)'] };
        const second = { name: '2', up: ['alter table notes add column text text'] };
        await open(first, second);
        const before = EntitySchema.REGISTRY.size;
        await Promise.all([open(first, second), open(first, second)]);
        expect(EntitySchema.REGISTRY.size).to.equal(before);
    });
});
