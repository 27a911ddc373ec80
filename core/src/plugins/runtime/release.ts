/** What a generation released when it ended, what it left behind, and what failed. */
import type { Release } from '@portico/sdk/host';

import type { ReleaseReport } from './generation.ts';
import { messageOf } from './messages.ts';

/** Collects the parts of a release report. */
export class ReleaseNotes {
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
