/** `ctx.accessLog` of one generation: only with the capability, few streams at once, and a report of what was left out. */
import { type AccessRecord, errors } from '@portico/sdk';
import type { Grants } from '@portico/sdk/host';

import type { Clock } from '../../../platform/clock.ts';
import type { HealthReport } from '../generation/generation.ts';
import type { AccessLogPort } from '../ports.ts';

/** What the access log of one generation works with. */
export interface PluginAccessLogOptions {
    readonly grants: Grants;
    readonly log: AccessLogPort;
    readonly clock: Clock;
}

const mostStreams = 16;
/** For so long after records were left out, the plugin is shown as degraded. */
const toldMs = 10 * 60_000;

/** The access log as one generation reads it. */
export class PluginAccessLog {
    readonly #options: PluginAccessLogOptions;
    #streams = 0;
    #dropped = 0;
    #droppedAt = Number.NEGATIVE_INFINITY;

    constructor(options: PluginAccessLogOptions) {
        this.#options = options;
    }

    /** @throws CAPABILITY_MISSING 50305; VALIDATION_FAILED 40001; the stream itself IN_USE 40901 when there are 16 others */
    read(from: Date | null, signal: AbortSignal): AsyncIterable<readonly AccessRecord[]> {
        this.#options.grants.require('logs', 'access');
        if (from !== null && !(from instanceof Date && Number.isFinite(from.getTime()))) {
            throw errors.invalid([{ path: 'from', message: 'from is a date' }]);
        }
        return this.#batches(from, signal);
    }

    /** Says whether the log is written and whether the plugin keeps up; nothing when the plugin does not read it. */
    health(): readonly HealthReport[] {
        if (this.#streams === 0 && this.#dropped === 0) {
            return [];
        }
        const name = 'accessLog';
        if (this.#options.clock.now() - this.#droppedAt < toldMs) {
            return [
                {
                    name,
                    state: 'degraded',
                    evidence: `${this.#dropped} records of the access log were left out since the start, the last at ${new Date(this.#droppedAt).toISOString()}`,
                    remedy: {
                        text: 'The plugin reads too slowly for the traffic, or lines of the log are damaged: look at its log, and tell its author'
                    }
                }
            ];
        }
        return [
            {
                name,
                state: 'ok',
                evidence: this.#options.log.isOn()
                    ? `${this.#dropped} records left out since the start`
                    : 'The setting engine.accessLog is off: nothing is recorded'
            }
        ];
    }

    async *#batches(from: Date | null, signal: AbortSignal): AsyncGenerator<readonly AccessRecord[]> {
        const { grants, log, clock } = this.#options;
        if (this.#streams >= mostStreams) {
            throw errors.inUse(`${mostStreams} streams of the access log`);
        }
        this.#streams += 1;
        try {
            for await (const batch of log.follow({ from, signal })) {
                grants.require('logs', 'access');
                const dropped = batch.reduce((sum, record) => sum + record.dropped, 0);
                if (dropped > 0) {
                    this.#dropped += dropped;
                    this.#droppedAt = clock.now();
                }
                yield batch;
            }
        } finally {
            this.#streams -= 1;
        }
    }
}
