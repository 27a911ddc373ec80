/** The services of one generation of the plugin. */
import { Mutex } from '@portico/sdk';

import type { Machine } from './machine.ts';
import { Accounts } from './runs/execution/accounts.ts';
import { Runs } from './runs/runs.ts';
import { Scheduler } from './schedule/scheduler.ts';
import type { Ctx } from './settings.ts';
import { Batches } from './tasks/batches.ts';
import { ExportSection } from './tasks/export-section.ts';
import { Tasks } from './tasks/tasks.ts';
import { Triggers } from './triggers/triggers.ts';

/** What the routes ask. */
export interface Services {
    /** The clock of the machine, in milliseconds since 1970. */
    readonly now: () => number;
    readonly runs: Runs;
    readonly scheduler: Scheduler;
    readonly tasks: Tasks;
    readonly batches: Batches;
    readonly exportSection: ExportSection;
    readonly triggers: Triggers;
}

/** Makes the services and connects them. Runs, scheduler and tasks share one mutex: each decision about runs sees the decision before it. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const mutex = new Mutex();
    const accounts = new Accounts(ctx);
    const runs = new Runs({
        ctx,
        accounts,
        mutex,
        now: machine.now,
        onScheduleChange: () => scheduler.checkSoon()
    });
    const scheduler = new Scheduler({ ctx, machine, mutex, runs });
    const parts = { ctx, machine, mutex, accounts, runs, scheduler };
    const tasks = new Tasks(parts);
    return {
        now: machine.now,
        runs,
        scheduler,
        tasks,
        batches: new Batches(parts),
        exportSection: new ExportSection(ctx, tasks),
        triggers: new Triggers({ ctx, runs, now: machine.now })
    };
}
