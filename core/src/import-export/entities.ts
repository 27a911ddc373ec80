/** What import and export keep: plugins of a document that are not installed here, until they are. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

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

export const importExportEntities = [KeptPluginEntity] as const;

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

export const importExportMigrations: readonly MigrationObject[] = [{ name: '0001-import-export', class: CreateKeptPlugins }];
