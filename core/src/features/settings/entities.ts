/** The table of settings: a row for each setting that was ever written. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A setting. One that was reset to its default keeps its row, for its version. */
export const SettingEntity = defineEntity({
    name: 'Setting',
    tableName: 'settings',
    properties: (p) => ({
        key: p.string().primary(),
        /** JSON, sealed when the setting is secret; null for the default. */
        value: p.text().nullable(),
        version: p.integer(),
        updatedAt: p.integer()
    })
});

/** The entities of settings. */
export const settingsEntities = [SettingEntity] as const;

class CreateSettingsTable extends Migration {
    override up(): void {
        this.addSql(`create table settings (
            key text primary key not null,
            value text,
            version integer not null,
            updated_at integer not null
        ) without rowid`);
    }
}

/** The migrations of settings. */
export const settingsMigrations: readonly MigrationObject[] = [
    { name: '0001-settings', class: CreateSettingsTable }
];
