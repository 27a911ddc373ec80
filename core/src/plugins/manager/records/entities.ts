/** The tables of plugins: one record for each name and package, their data folders, and starts of the panel that were not good. */
import { defineEntity, type InferEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A package under a plugin name: what was decided about it, and how it went. */
export const PluginEntity = defineEntity({
    name: 'Plugin',
    tableName: 'plugins',
    properties: (p) => ({
        name: p.string().primary(),
        package: p.string().primary(),
        enabled: p.boolean(),
        /** JSON of the capabilities that an admin granted. */
        grants: p.text(),
        /** JSON of the capabilities that it asked for when an admin last decided about them. */
        decided: p.text(),
        /** JSON of the settings; secrets in it are sealed. */
        settings: p.text(),
        /** JSON list of the times of its latest failures, milliseconds since 1970. */
        failures: p.text(),
        /** JSON of the last failure; null when it runs, or has never failed. */
        failure: p.text().nullable(),
        quarantinedAt: p.integer().nullable(),
        /** Roles and tokens that name its permissions mean this package, and no other package of the name. */
        holdsArea: p.boolean(),
        /** JSON of the package as it was last found. */
        seen: p.text(),
        firstSeenAt: p.integer(),
        version: p.integer()
    })
});

/** A row of `plugins`. */
export type PluginRow = Readonly<Omit<InferEntity<typeof PluginEntity>, symbol>>;

/** A folder with a plugin's data, `<dataDir>/plugin-data/<name>/<n>`. */
export const PluginDataEntity = defineEntity({
    name: 'PluginData',
    tableName: 'plugin_data',
    properties: (p) => ({
        name: p.string().primary(),
        package: p.string().primary(),
        n: p.integer().primary(),
        /** The code that the data were made for: the folder below `plugins/` that the lock names; empty for a plugin that was not installed. */
        folder: p.string(),
        /** Version of that code. */
        version: p.string(),
        createdAt: p.integer(),
        current: p.boolean(),
        /** Made by a swap that has not noted its commit. It was committed when the lock names the code. */
        pending: p.boolean(),
        /** A change was accepted since the folder was made; a rollback to earlier data would lose it. */
        accepted: p.boolean(),
        /** JSON of what was decided with the swap; becomes part of the record with the commit. */
        decision: p.text().nullable()
    })
});

/** A row of `plugin_data`. */
export type PluginDataRow = Readonly<Omit<InferEntity<typeof PluginDataEntity>, symbol>>;

/** A start of the panel that loaded plugins and has not noted that it was good. */
export const PluginBootEntity = defineEntity({
    name: 'PluginBoot',
    tableName: 'plugin_boots',
    properties: (p) => ({ id: p.integer().primary(), at: p.integer() })
});

/** The entities of all plugin tables. */
export const pluginEntities = [PluginEntity, PluginDataEntity, PluginBootEntity] as const;

class CreatePluginTables extends Migration {
    override up(): void {
        this.addSql(`create table plugins (
            name text not null, package text not null, enabled integer not null, grants text not null, decided text not null, settings text not null, failures text not null,
            failure text null, quarantined_at integer null, holds_area integer not null, seen text not null, first_seen_at integer not null, version integer not null, primary key (name, package)
        )`);
        this.addSql(`create table plugin_data (
            name text not null, package text not null, n integer not null, folder text not null, version text not null, created_at integer not null, current integer not null,
            pending integer not null, accepted integer not null, decision text null, primary key (name, package, n)
        )`);
        this.addSql(
            'create unique index plugin_data_current on plugin_data (name, package) where current = 1'
        );
        this.addSql(
            'create table plugin_boots (id integer primary key autoincrement not null, at integer not null)'
        );
    }
}

/** The migrations of all plugin tables. */
export const pluginMigrations: readonly MigrationObject[] = [
    { name: '0002-plugins', class: CreatePluginTables }
];
