/** What import and export keep: plugins of a document that are not installed here, until they are, and data of plugins until they have taken it back. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A plugin of an imported document that is not installed yet. */
export const KeptPluginEntity = defineEntity({
    name: 'KeptPlugin',
    tableName: 'kept_plugins',
    properties: (p) => ({
        name: p.string().primary(),
        package: p.string(),
        version: p.string(),
        enabled: p.boolean(),
        /** JSON of the settings and of those that are secret, sealed. */
        sealed: p.text(),
        keptAt: p.integer()
    })
});

/** Data of a plugin that it has not taken back yet. */
export const PluginRestoreEntity = defineEntity({
    name: 'PluginRestore',
    tableName: 'plugin_restores',
    properties: (p) => ({
        id: p.integer().primary(),
        name: p.string().unique(),
        package: p.string(),
        /** The version that gave it. */
        version: p.string(),
        /** Of the import. */
        mode: p.string(),
        /** How often it was begun. */
        attempts: p.integer(),
        /** JSON of the items, sealed. */
        sealed: p.text(),
        /** JSON of who imported it. */
        importer: p.text(),
        keptAt: p.integer()
    })
});

/** The tables of this feature. */
export const importExportEntities = [KeptPluginEntity, PluginRestoreEntity] as const;

class CreateKeptPlugins extends Migration {
    override up(): void {
        this.addSql(`create table kept_plugins (
            name text primary key not null,
            package text not null,
            version text not null,
            enabled integer not null,
            sealed text not null,
            kept_at integer not null
        ) without rowid`);
    }
}

class CreatePluginRestores extends Migration {
    override up(): void {
        this.addSql(`create table plugin_restores (
            id integer primary key autoincrement not null,
            name text not null unique,
            package text not null,
            version text not null,
            mode text not null,
            attempts integer not null,
            sealed text not null,
            importer text not null,
            kept_at integer not null
        )`);
    }
}

/** The migrations of this feature, in order. */
export const importExportMigrations: readonly MigrationObject[] = [
    { name: '0001-import-export', class: CreateKeptPlugins },
    { name: '0002-import-export-plugin-data', class: CreatePluginRestores }
];
