import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A revision: what it changed, and the hash of what was rendered. Host deltas are JSON in the last column, which lists do not read. */
export const RevisionEntity = defineEntity({
    name: 'EngineRevision',
    tableName: 'engine_revision',
    properties: (p) => ({
        number: p.integer().primary(),
        at: p.integer(),
        applied: p.boolean(),
        reloaded: p.boolean(),
        hash: p.string(),
        authors: p.text(),
        changed: p.integer(),
        settings: p.text(),
        hosts: p.text()
    })
});

/** The engine's state row: there is one, with the id 1. */
export const EngineStateEntity = defineEntity({
    name: 'EngineState',
    tableName: 'engine_state',
    properties: (p) => ({
        id: p.integer().primary(),
        wanted: p.string(),
        revision: p.integer(),
        applied: p.integer(),
        hostId: p.integer(),
        settings: p.text().nullable()
    })
});

/** The fragments of each plugin, as sealed JSON. */
export const EngineFragmentEntity = defineEntity({
    name: 'EngineFragment',
    tableName: 'engine_fragment',
    properties: (p) => ({ plugin: p.string().primary(), fragments: p.text() })
});

/** All entities of the engine service. */
export const engineEntities = [RevisionEntity, EngineStateEntity, EngineFragmentEntity] as const;

class CreateEngineTables extends Migration {
    override up(): void {
        this.addSql(`create table engine_revision (
            number integer primary key not null,
            at integer not null,
            applied integer not null,
            reloaded integer not null,
            hash text not null,
            authors text not null,
            changed integer not null,
            settings text not null,
            hosts text not null
        )`);
        this.addSql(`create table engine_state (
            id integer primary key not null check (id = 1),
            wanted text not null check (wanted in ('running', 'stopped')),
            revision integer not null,
            applied integer not null,
            host_id integer not null,
            settings text
        )`);
        this.addSql(
            "insert into engine_state (id, wanted, revision, applied, host_id, settings) values (1, 'running', 0, 0, 0, null)"
        );
    }
}

class CreateFragments extends Migration {
    override up(): void {
        this.addSql(
            'create table engine_fragment (plugin text primary key not null, fragments text not null) without rowid'
        );
    }
}

/** All migrations of the engine service, in their order. */
export const engineMigrations: readonly MigrationObject[] = [
    { name: '0001-engine-revisions', class: CreateEngineTables },
    { name: '0002-engine-fragments', class: CreateFragments }
];
