/** Counts incidents as failures of the plugin: at once when the process went on, else at the next start. */
import { rmSync } from 'node:fs';

import type { Notification } from '@portico/sdk';

import type { Logger } from '../../../platform/log/log.ts';
import { countFailure } from '../reconciler/failures/quarantine.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import { type KeptIncident, readIncidents } from './incident.ts';

/** What the count of incidents works with. */
export interface IncidentsOptions {
    readonly folder: string;
    readonly lifecycle: Lifecycle;
    readonly log: Logger;
    /** Returns at once, and never throws. */
    readonly notify: (notification: Notification) => void;
}

/** The incidents of one data folder. */
export class Incidents {
    readonly #options: IncidentsOptions;

    constructor(options: IncidentsOptions) {
        this.#options = options;
    }

    /** Counts what earlier processes left. Call it before a plugin is loaded. @returns whether there was anything */
    async countEarlier(): Promise<boolean> {
        const earlier = readIncidents(this.#options.folder);
        for (const incident of earlier) {
            await this.#count(incident);
        }
        return earlier.length > 0;
    }

    /** Counts one of this process. A plugin that eats the memory is stopped; another one only when it is in quarantine now. */
    async count(incident: KeptIncident): Promise<void> {
        const { lifecycle } = this.#options;
        const { plugin, code, message } = incident;
        if (code === 'MEMORY_EXHAUSTED') {
            lifecycle.end(plugin, 'it took the memory of the panel', { stage: 'running', code, message });
            await lifecycle.idle();
            rmSync(incident.path, { force: true });
        } else {
            await this.#count(incident);
            await lifecycle.reconcile(plugin);
        }
    }

    async #count({ plugin, code, message, at, path }: KeptIncident): Promise<void> {
        const { lifecycle, log, notify } = this.#options;
        const failure = { stage: 'running' as const, code, message, at };
        log.warn('A plugin harmed the whole panel', { plugin, code, message });
        for (const record of lifecycle.records.of(plugin).filter(({ enabled }) => enabled)) {
            const { failures, quarantinedAt } = countFailure(record.failures, failure, at);
            await lifecycle.records.note(plugin, record.package, {
                failure,
                failures,
                quarantinedAt: quarantinedAt ?? record.quarantinedAt
            });
        }
        rmSync(path, { force: true });
        notify({
            event: 'plugin.failed',
            severity: 'error',
            title: `The plugin ${plugin} harmed the whole panel`,
            text: `${message} (running, ${code})`,
            data: { plugin, stage: 'running', code }
        });
    }
}
