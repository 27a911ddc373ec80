/** What is kept of settings: one row for each that was ever written. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A written setting. A setting that was put back to its default keeps its row, for its version. */
export const SettingEntity = defineEntity({
    name: 'Setting',
    tableName: 'settings',
    properties: (p) => ({
        key: p.string().primary(),
        /** JSON; sealed where the setting is secret; null: the default. */
        value: p.text().nullable(),
        version: p.integer(),
        updatedAt: p.integer()
    })
});

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

export const settingsMigrations: readonly MigrationObject[] = [
    { name: '0001-settings', class: CreateSettingsTable }
];
