/** The health of plugins: asked for in the background once a minute, and at once when an admin looks at one plugin. */
import type { Clock } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type { HealthReport } from '../../runtime/generation/generation.ts';
import type { PluginHostPorts } from '../../runtime/ports.ts';
import type { Runtime } from '../records/plugin.ts';
import type { Lifecycle } from './lifecycle.ts';

/** What the rounds of health checks work with. */
export interface HealthOptions {
    readonly lifecycle: Pick<Lifecycle, 'runtimes'>;
    readonly clock: Clock;
    readonly log: Logger;
    /** The checks that a plugin's taps of `health.collect` report. */
    collect(plugin: string): Promise<readonly HealthReport[]>;
    /** Milliseconds between two rounds; default 60,000. */
    readonly everyMs?: number;
}

const usualEveryMs = 60_000;
/** Health that is not older is not asked for again. */
const freshMs = 10_000;

/** Asks plugins for their health, and keeps it on their `Runtime`. */
export class PluginHealth {
    readonly #options: HealthOptions;
    readonly #asked = new Map<string, Promise<void>>();
    #timer: NodeJS.Timeout | undefined;
    #isClosed = false;

    constructor(options: HealthOptions) {
        this.#options = options;
    }

    /** Asks one running plugin, unless that was done within the last ten seconds. Resolves within the time limits of its checks; never rejects. */
    ask(runtime: Runtime): Promise<void> {
        const { generation, health, name } = runtime;
        if (
            this.#isClosed ||
            generation === null ||
            runtime.state !== 'running' ||
            (health !== null && Math.abs(this.#options.clock.now() - health.at) <= freshMs)
        ) {
            return Promise.resolve();
        }
        let asking = this.#asked.get(name);
        if (asking === undefined) {
            asking = this.#askNow(runtime, generation).finally(() => this.#asked.delete(name));
            this.#asked.set(name, asking);
        }
        return asking;
    }

    /** Asks all plugins in rounds: one after the other, and never two rounds at once. */
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

    /** Ends the rounds. */
    close(): void {
        this.#isClosed = true;
        clearTimeout(this.#timer);
    }

    async #askNow(runtime: Runtime, generation: NonNullable<Runtime['generation']>): Promise<void> {
        const { clock, log, collect } = this.#options;
        try {
            const [own, collected] = await Promise.all([generation.health(), collect(runtime.name)]);
            if (runtime.generation === generation) {
                runtime.health = { at: clock.now(), reports: [...own, ...collected] };
            }
        } catch (error) {
            log.warn('A plugin could not be asked for its health', { plugin: runtime.name, error });
        }
    }
}

const states: readonly unknown[] = ['ok', 'degraded', 'failed'];
const maxChecks = 50;
const maxTextLength = 1_000;

/** Asks a plugin's taps of `health.collect`. A tap that fails is a failed check. */
export async function collectChecks(
    hooks: Pick<PluginHostPorts['hooks'], 'collect'>,
    plugin: string
): Promise<readonly HealthReport[]> {
    for await (const outcome of hooks.collect('health.collect', async () => ({}), { only: [plugin] })) {
        return outcome.ok
            ? checksOf(outcome.result)
            : [{ name: 'health.collect', state: 'failed', evidence: outcome.message }];
    }
    return [];
}

/** A tap may answer anything. */
function checksOf(answer: unknown): readonly HealthReport[] {
    const list: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
    return list.slice(0, maxChecks).map((each): HealthReport => {
        const { name, state, evidence, remedy } = (
            typeof each === 'object' && each !== null ? each : {}
        ) as Readonly<Record<string, unknown>>;
        if (typeof name !== 'string' || !states.includes(state)) {
            return { name: 'health.collect', state: 'failed', evidence: 'It answered no health check' };
        }
        return {
            name: name.slice(0, maxTextLength),
            state: state as HealthReport['state'],
            ...(typeof evidence === 'string' ? { evidence: evidence.slice(0, maxTextLength) } : {}),
            ...(typeof remedy === 'object' && remedy !== null && !Array.isArray(remedy)
                ? { remedy: remedy as NonNullable<HealthReport['remedy']> }
                : {})
        };
    });
}
