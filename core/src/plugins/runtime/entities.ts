/** What the host side of plugins keeps in the core's database: the journal of changes under way, and when scheduled work is due. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

export const PluginJournalEntity = defineEntity({
    name: 'PluginJournal',
    tableName: 'plugin_journal',
    properties: (p) => ({ id: p.integer().primary(), at: p.integer(), entry: p.text() })
});

export const PluginScheduleEntity = defineEntity({
    name: 'PluginSchedule',
    tableName: 'plugin_schedules',
    properties: (p) => ({
        plugin: p.string().primary(),
        name: p.string().primary(),
        /** When the next run is due, milliseconds since 1970. */
        dueAt: p.integer()
    })
});

export const pluginHostEntities = [PluginJournalEntity, PluginScheduleEntity] as const;

class CreatePluginHostTables extends Migration {
    override up(): void {
        this.addSql(
            'create table plugin_journal (id integer primary key autoincrement, at integer not null, entry text not null)'
        );
        this.addSql(
            'create table plugin_schedules (plugin text not null, name text not null, due_at integer not null, primary key (plugin, name)) without rowid'
        );
    }
}

export const pluginHostMigrations: readonly MigrationObject[] = [
    { name: '0001-plugin-host', class: CreatePluginHostTables }
];
