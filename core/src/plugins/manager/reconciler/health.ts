/** How plugins are: asked for in the background at a rate that nobody notices, and at once by whoever looks at one. */
import type { Clock } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log.ts';
import type { HealthReport } from '../../runtime/generation.ts';
import type { Runtime } from '../records/plugin.ts';
import type { Lifecycle } from './lifecycle.ts';

export interface HealthOptions {
    readonly lifecycle: Pick<Lifecycle, 'runtimes'>;
    readonly clock: Clock;
    readonly log: Logger;
    /** What a plugin's taps of `health.collect` know, as checks. */
    collect(plugin: string): Promise<readonly HealthReport[]>;
    /** How often all are asked; default a minute. */
    readonly everyMs?: number;
}

const usualEveryMs = 60_000;
/** Health that is younger is not asked for again. */
const youngMs = 10_000;

export class PluginHealth {
    readonly #options: HealthOptions;
    readonly #asked = new Map<string, Promise<void>>();
    #timer: NodeJS.Timeout | undefined;
    #isClosed = false;

    constructor(options: HealthOptions) {
        this.#options = options;
    }

    /** Looks at one that runs, unless that was just done. Resolves within the time limits of its checks, and never rejects. */
    ask(runtime: Runtime): Promise<void> {
        const { generation, health, name } = runtime;
        if (
            this.#isClosed ||
            generation === null ||
            runtime.state !== 'running' ||
            (health !== null && Math.abs(this.#options.clock.now() - health.at) <= youngMs)
        ) {
            return Promise.resolve();
        }
        let asking = this.#asked.get(name);
        if (asking === undefined) {
            asking = this.#look(runtime, generation).finally(() => this.#asked.delete(name));
            this.#asked.set(name, asking);
        }
        return asking;
    }

    /** Asks all of them now and then: one after the other, and never two rounds at once. */
    start(): void {
        const round = async (): Promise<void> => {
            for (const runtime of this.#options.lifecycle.runtimes()) {
                await this.ask(runtime);
            }
            next();
        };
        const next = (delay = this.#options.everyMs ?? usualEveryMs): void => {
            if (!this.#isClosed) {
                this.#timer = setTimeout(() => void round(), delay).unref();
            }
        };
        next(0);
    }

    close(): void {
        this.#isClosed = true;
        clearTimeout(this.#timer);
    }

    async #look(runtime: Runtime, generation: NonNullable<Runtime['generation']>): Promise<void> {
        const { clock, log, collect } = this.#options;
        try {
            const [own, collected] = await Promise.all([generation.health(), collect(runtime.name)]);
            if (runtime.generation === generation) {
                runtime.health = { at: clock.now(), reports: [...own, ...collected] };
            }
        } catch (error) {
            log.warn('A plugin could not be asked how it is', { plugin: runtime.name, error });
        }
    }
}

const states = ['ok', 'degraded', 'failed'];
const mostChecks = 50;
const longestText = 1_000;

/** What a tap answered, as checks: it may answer anything. */
export function checksOf(answer: unknown): readonly HealthReport[] {
    const list: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
    return list.slice(0, mostChecks).map((each): HealthReport => {
        const { name, state, evidence, remedy } = (
            typeof each === 'object' && each !== null ? each : {}
        ) as Readonly<Record<string, unknown>>;
        if (typeof name !== 'string' || !states.includes(state as string)) {
            return { name: 'health.collect', state: 'failed', evidence: 'It answered no health check' };
        }
        return {
            name: name.slice(0, longestText),
            state: state as HealthReport['state'],
            ...(typeof evidence === 'string' ? { evidence: evidence.slice(0, longestText) } : {}),
            ...(typeof remedy === 'object' && remedy !== null && !Array.isArray(remedy)
                ? { remedy: remedy as never }
                : {})
        };
    });
}
