/** The tables of exports. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

/** Exports. Batches that wait are written without the ORM. */
export const ExportEntity = defineEntity({
    name: 'MonitoringExport',
    tableName: 'exports',
    properties: {
        id: p.integer().primary(),
        type: p.string(),
        url: p.string(),
        /** Sealed JSON; null: none. */
        headers: p.string().nullable(),
        metrics: p.json().$type<readonly string[]>(),
        intervalSeconds: p.integer().fieldName('interval_seconds'),
        labels: p.json().$type<Readonly<Record<string, string>>>(),
        enabled: p.boolean(),
        version: p.integer(),
        createdAt: p.integer().fieldName('created_at'),
        updatedAt: p.integer().fieldName('updated_at'),
        lastSuccessAt: p.integer().fieldName('last_success_at').nullable(),
        lastError: p.string().fieldName('last_error').nullable(),
        dropped: p.integer()
    }
});
/** An export as it is stored. */
export type ExportRow = InferEntity<typeof ExportEntity>;

/** Makes the tables of exports and of the batches that wait. */
export const exportMigration: Migration = {
    name: '0008-exports',
    up: [
        `create table exports (id integer primary key autoincrement, type text not null, url text not null, headers text, metrics text not null, interval_seconds integer not null,
        labels text not null, enabled integer not null, version integer not null, created_at integer not null, updated_at integer not null,
        last_success_at integer, last_error text, dropped integer not null)`,
        'create table export_batches (id integer primary key autoincrement, export_id integer not null, at integer not null, body blob not null)',
        'create index export_batches_by_export on export_batches (export_id, id)'
    ]
};
