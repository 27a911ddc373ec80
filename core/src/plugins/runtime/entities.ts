/** The plugin runtime's tables in the core's database: the journal of changes under way, and when scheduled work is due. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A change that a plugin has begun and not ended; see `records/journal.ts`. */
export const PluginJournalEntity = defineEntity({
    name: 'PluginJournal',
    tableName: 'plugin_journal',
    properties: (p) => ({ id: p.integer().primary(), at: p.integer(), entry: p.text() })
});

/** When a plugin's scheduled work is due next. */
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

/** All entities of the plugin runtime. */
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

/** The migrations that create their tables. */
export const pluginHostMigrations: readonly MigrationObject[] = [
    { name: '0001-plugin-host', class: CreatePluginHostTables }
];
