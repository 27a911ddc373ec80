/** What a generation released when it ended, what it left behind, and what failed. */
import type { LeakDetector } from '@portico/registry';
import { messageOf } from '@portico/sdk';
import { type Guest, type Release, type Scope, within } from '@portico/sdk/host';

import type { Logger } from '../../../platform/log/log.ts';
import type { Handles } from '../api/handles.ts';
import type { UsageLog } from '../records/usage-log.ts';
import type { Schedules } from '../schedules.ts';
import type { ReleaseReport } from './generation.ts';

/** What ends with a generation. */
export interface GenerationParts {
    readonly name: string;
    /** Why it ends, for the plugin's signal. */
    readonly reason: string;
    /** Takes the routes away and answers how many requests it cut. */
    unmount(): Promise<number>;
    /** Ids of the mounted routes. */
    readonly routes: readonly string[];
    readonly ending: AbortController;
    readonly schedules: Schedules;
    /** Time limit of the plugin's own stop, and of each schedule, milliseconds. */
    readonly stopMs: number;
    /** Null when it was never created. */
    readonly guest: Guest | null;
    readonly scope: Scope;
    readonly usageLog: UsageLog;
    readonly leaks: LeakDetector;
    readonly handles: Handles;
    readonly log: Logger;
}

/** Ends a generation: routes first, then schedules, the plugin's code, and everything that its scopes hold. Never rejects. */
export async function releaseGeneration(parts: GenerationParts): Promise<ReleaseReport> {
    const { name, routes, ending, schedules, stopMs, guest, scope, leaks } = parts;
    const notes = new ReleaseNotes(name);
    await notes.attempt('routes', async () => {
        notes.cut = await parts.unmount();
        notes.add({ released: routes.map((id) => ({ kind: 'route', name: id })), leaked: [] });
    });
    ending.abort(new Error(`The plugin ${name} ends: ${parts.reason}`));
    for (const schedule of schedules.names()) {
        await notes.attempt('schedule', async () => {
            await within(stopMs, () => schedules.stop(schedule));
            notes.add({ released: [{ kind: 'schedule', name: schedule }], leaked: [] });
        });
    }
    if (guest !== null) {
        await notes.stopped(() => within(stopMs, (signal) => guest.stop({ signal })));
    }
    notes.add(await scope.release());
    if (guest !== null) {
        await notes.attempt('guest', async () => notes.add(await guest.end({})));
    }
    await notes.attempt('audit', () => parts.usageLog.close());
    const error = 'The plugin left it behind; it was ended';
    notes.add({ released: [], leaked: (await leaks.end()).map((leak) => ({ ...leak, error })) });
    parts.handles.clear();
    const report = notes.report();
    if (report.leaked.length > 0 || report.failures.length > 0) {
        const { leaked, failures } = report;
        parts.log.warn('A plugin did not end cleanly', { leaked, failures });
    }
    return report;
}

/** Collects the parts of a release report. */
class ReleaseNotes {
    readonly #plugin: string;
    readonly #released: { kind: string; name: string }[] = [];
    readonly #leaked: { kind: string; name: string; error: string }[] = [];
    readonly #failures: string[] = [];
    /** Requests that were cut. */
    cut = 0;

    constructor(plugin: string) {
        this.#plugin = plugin;
    }

    /** Does one step of the end. A step that fails counts as a leak, and the others go on. */
    async attempt(kind: string, work: () => Promise<void>): Promise<void> {
        try {
            await work();
        } catch (error) {
            this.#leaked.push({ kind, name: this.#plugin, error: messageOf(error) });
        }
    }

    /** Adds what a scope released. */
    add({ released, leaked }: Pick<Release, 'released' | 'leaked'>): void {
        this.#released.push(...released);
        this.#leaked.push(...leaked);
    }

    /** Adds what the plugin's own code said when it stopped. */
    async stopped(stop: () => Promise<{ readonly failures: readonly string[] }>): Promise<void> {
        try {
            this.#failures.push(...(await stop()).failures);
        } catch (error) {
            this.#failures.push(messageOf(error));
        }
    }

    report(): ReleaseReport {
        return { released: this.#released, leaked: this.#leaked, cut: this.cut, failures: this.#failures };
    }
}
