/** Target 8: what the panel adds to SQLite in lists and in changes of many rows. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';

import { openStorage } from '../../../core/src/composition/storage.ts';
import { HostEntity } from '../../../core/src/features/hosts/entities.ts';
import { HostList } from '../../../core/src/features/hosts/list.ts';
import { DatabaseHostStore } from '../../../core/src/features/hosts/store.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { median, number, type Report } from '../report.ts';
import { rowsOf } from '../servers/fleet.ts';

const many = 1_000;
const columns = [
    'id',
    'domain',
    'type',
    'enabled',
    'owner',
    'tags',
    'notes',
    'version',
    'created_at',
    'updated_at',
    'applied',
    'search',
    'site',
    'document'
] as const;

/** Microseconds of each variant: medians of rounds that alternate. */
async function times<K extends string>(
    works: Readonly<Record<K, () => unknown>>,
    runs: number
): Promise<Readonly<Record<K, number>>> {
    const names = Object.keys(works) as K[];
    const taken = new Map<K, number[]>(names.map((name) => [name, []]));
    for (let round = -20; round < runs; round += 1) {
        for (const name of names) {
            const began = performance.now();
            await works[name]();
            if (round >= 0) {
                taken.get(name)?.push((performance.now() - began) * 1000);
            }
        }
    }
    return Object.fromEntries(names.map((name) => [name, median(taken.get(name) ?? [])])) as Record<
        K,
        number
    >;
}

export async function bench(report: Report): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
    const db = await openStorage(folder);
    try {
        const store = new DatabaseHostStore(db, createKeyring(folder));
        const rows = rowsOf(many, '127.0.0.1:9');
        const changes = rows.map((row) => ({ id: row.site.id, row }));
        await db.write((tx) => store.write(tx, changes, true));
        const draft = { hosts: new Map(rows.map((row) => [row.site.id, row])) };
        // The count of changes differs in each read, so that no page comes from a cache.
        let readings = 0;
        const list = new HostList(
            db,
            {
                get changes() {
                    return (readings += 1);
                }
            },
            {
                draft: () => draft as never, // the list reads the hosts of the draft alone
                pending: () => new Set(),
                process: () => ({ state: 'running', version: null, pid: 1, startedAt: null, message: null }),
                stateOf: () => ({ state: 'applied', message: null })
            }
        );
        const raw = db.prepare<[number], { document: string }>(
            'select id, document, id as key from host order by id asc, id asc limit ?'
        );
        const read = await times(
            {
                raw: () =>
                    `[${raw
                        .all(50)
                        .map(({ document }) => document)
                        .join(',')}]`.length,
                ours: () => list.page({ sort: 'id', limit: 50 }).json().length,
                entities: () =>
                    db.read((em) => em.find(HostEntity, {}, { limit: 50, orderBy: { id: 'asc' } }))
            },
            300
        );
        report.add({
            target: '8',
            what: 'page of 50 hosts against the prepared statement alone',
            value: read.ours / read.raw,
            most: [4, 2],
            of: `${number(read.ours)} of ${number(read.raw)} µs; as entities ${number(read.entities)}`
        });

        const bare = new Sqlite(join(folder, 'bare.db'));
        bare.pragma('journal_mode = WAL');
        bare.pragma('synchronous = FULL');
        const { sql } = db
            .prepare<[], { sql: string }>(
                "select sql from sqlite_master where type = 'table' and name = 'host'"
            )
            .get() ?? { sql: '' };
        bare.exec(sql);
        for (const index of db
            .prepare<[], { sql: string }>(
                "select sql from sqlite_master where type = 'index' and tbl_name = 'host' and sql is not null"
            )
            .all()) {
            bare.exec(index.sql);
        }
        const stored = db
            .prepare<[], Record<(typeof columns)[number], unknown>>(`select ${columns.join(', ')} from host`)
            .all();
        const insert = bare.prepare(
            `insert into host (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')}) on conflict (id) do update set ${columns
                .slice(1)
                .map((column) => `${column} = excluded.${column}`)
                .join(', ')}`
        );
        const all = bare.transaction(() =>
            stored.forEach((row) => insert.run(...columns.map((column) => row[column])))
        );
        const write = await times(
            { raw: () => all(), ours: () => db.write((tx) => store.write(tx, changes, true)) },
            5
        );
        report.add({
            target: '8',
            what: 'writing 1,000 hosts against a prepared statement for each',
            value: write.ours / write.raw,
            most: [3.5, 2],
            of: `${number(write.ours / many)} of ${number(write.raw / many)} µs a row`
        });
        bare.close();
    } finally {
        await db.close();
        rmSync(folder, { recursive: true, force: true });
    }
}
