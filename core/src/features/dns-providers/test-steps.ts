/** The steps of the test of a provider. */
import type { Seen } from './challenges/name-servers.ts';
import type { ProviderTestResult } from './schema.ts';

type Step = ProviderTestResult['steps'][number];

/** Collects how each step ended, in order. A failure belongs to the step that is under way; the record is removed even then. */
export class TestSteps {
    readonly list: Step[] = [];
    #began = performance.now();
    #seen: readonly Seen[] = [];
    #isRemoved = false;

    /** Whether all three steps went well. */
    get ok(): boolean {
        return this.list.length === 3 && this.list.every(({ ok }) => ok);
    }

    see(seen: readonly Seen[]): void {
        this.#seen = seen;
    }

    removed(): void {
        this.#isRemoved = true;
    }

    done(step: Step['step'], message: string): void {
        this.#add(step, true, message);
    }

    end(message: string): void {
        this.#add(
            'remove',
            this.#isRemoved,
            this.#isRemoved ? message : 'The record could not be removed; the next attempt will try again'
        );
    }

    failed(message: string): void {
        const step = (['write', 'lookup', 'remove'] as const)[Math.min(this.list.length, 2)] ?? 'remove';
        this.#add(step, false, message);
        if (step === 'lookup') {
            this.end('The record is gone');
        }
    }

    #add(step: Step['step'], ok: boolean, message: string): void {
        const now = performance.now();
        const seen = this.#seen.map(({ server, values, error }) => ({ server, values: [...values], error }));
        this.list.push({
            step,
            ok,
            message,
            milliseconds: Math.round(now - this.#began),
            ...(step === 'lookup' ? { seen } : {})
        });
        this.#began = now;
    }
}
