/** The table of hosts. `site` is what the engine serves; `document` is the JSON that the API answers, so that a list needs no conversion. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** The table of hosts; fields with a form of their own are stored as JSON. */
export const HostEntity = defineEntity({
    name: 'Host',
    tableName: 'host',
    properties: (p) => ({
        id: p.integer().primary().autoincrement(false),
        domain: p.string(),
        type: p.string(),
        enabled: p.boolean(),
        /** The plugin that created the host; null for people. */
        owner: p.string().nullable(),
        /** JSON array. */
        tags: p.text(),
        notes: p.text(),
        version: p.integer(),
        /** RFC 3339, UTC, with milliseconds: sorts as text. */
        createdAt: p.string(),
        updatedAt: p.string(),
        /** Whether the engine served the row as it is at the time of the last write. */
        applied: p.boolean(),
        /** Lower-case text that the filter `q` searches. */
        search: p.text(),
        /** The `Site` as JSON, with the hashes of its passwords. */
        site: p.text(),
        /** The JSON of the API without `state` and `stateMessage`. */
        document: p.text()
    })
});

/** The tables of this feature. */
export const hostEntities = [HostEntity] as const;

class CreateHost extends Migration {
    override up(): void {
        this.addSql(`create table host (
            id integer primary key not null,
            domain text not null unique,
            type text not null,
            enabled integer not null,
            owner text,
            tags text not null,
            notes text not null,
            version integer not null,
            created_at text not null,
            updated_at text not null,
            applied integer not null,
            search text not null,
            site text not null,
            document text not null
        )`);
        // The rows are wide: every filter and every order has an index that holds all that it needs.
        for (const column of ['type', 'created_at', 'updated_at', 'search', 'tags']) {
            this.addSql(`create index host_${column} on host (${column}, id)`);
        }
    }
}

/** The migrations of this feature, in order. */
export const hostMigrations: readonly MigrationObject[] = [{ name: '0001-hosts', class: CreateHost }];
