/** The table of tasks: a row for each, with its log. */
import { defineEntity, type MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** A task. Times are milliseconds since 1970. */
export const TaskEntity = defineEntity({
    name: 'Task',
    tableName: 'tasks',
    properties: (p) => ({
        id: p.integer().primary(),
        kind: p.string(),
        title: p.string(),
        state: p.string(),
        progress: p.float().nullable(),
        /** The permission of the route that started it, which log and result need. */
        access: p.string(),
        /** Who started it, as `Caller.key`. */
        starter: p.string(),
        /** JSON of who started it, as the audit log remembers actors; null for tasks of older versions. */
        actor: p.text().nullable(),
        /** Id of the route that started it, as in the OpenAPI document; null where it was none. */
        route: p.string().nullable(),
        createdAt: p.integer(),
        startedAt: p.integer().nullable(),
        finishedAt: p.integer().nullable(),
        /** JSON. */
        result: p.text().nullable(),
        /** JSON of a failure. */
        error: p.text().nullable(),
        /** JSON: number of the first line that is kept, and the lines. */
        log: p.text(),
        version: p.integer()
    })
});

/** The entities of tasks. */
export const taskEntities = [TaskEntity] as const;

class CreateTaskTable extends Migration {
    override up(): void {
        this.addSql(`create table tasks (
            id integer primary key autoincrement,
            kind text not null,
            title text not null,
            state text not null check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
            progress real,
            access text not null,
            starter text not null,
            created_at integer not null,
            started_at integer,
            finished_at integer,
            result text,
            error text,
            log text not null,
            version integer not null
        )`);
    }
}

/** A list of tasks says who began each, and by which route. */
class AddOrigin extends Migration {
    override up(): void {
        this.addSql('alter table tasks add column actor text');
        this.addSql('alter table tasks add column route text');
    }
}

/** The migrations of tasks. */
export const taskMigrations: readonly MigrationObject[] = [
    { name: '0001-tasks', class: CreateTaskTable },
    { name: '0002-task-origin', class: AddOrigin }
];
