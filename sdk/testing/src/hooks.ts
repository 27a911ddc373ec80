/** The core's hooks in a test: the plugin's taps hang on them, and the test runs them. */
import { createCoreHooks } from '@portico/core/plugin-runtime';
import type { HookName, HookRun, Hooks, Tap } from '@portico/sdk';
import { createHookHost, type HookHost, type Published } from '@portico/sdk/host';

import { inTime } from './deadline.ts';
import { silence } from './log.ts';

/** A tap that threw, was too slow, or refused by failing. */
export interface TestTapFailure {
    readonly plugin: string;
    readonly hook: string;
    readonly error: unknown;
}

/** The hooks of the core, and those that the plugin publishes. */
export class TestHooks {
    /** Taps that failed, in order. */
    readonly failures: TestTapFailure[] = [];
    /** The hooks as the runtime takes them. @internal */
    readonly host: HookHost;
    readonly #patienceMs: number;
    readonly #published = new Map<string, Published<HookName>>();

    /** @internal */
    constructor(patienceMs: number) {
        this.#patienceMs = patienceMs;
        const host = createHookHost(
            ({ plugin, hook, error }) => void this.failures.push({ plugin, hook, error })
        );
        this.host = {
            ...host,
            define: (name, kind, options) => {
                const published = host.define(name, kind, options);
                // One map for hooks of every name: `run` gives each its own payload.
                this.#published.set(name, published as unknown as Published<HookName>);
                return published;
            },
            withdraw: (name) => {
                host.withdraw(name);
                this.#published.delete(name);
            }
        };
        createCoreHooks(silence, {}, this.host);
    }

    /**
     * Runs a hook as its publisher does.
     *
     * @throws REFUSED_BY_PLUGIN 40920 when a guard refuses; Error for a hook that is not published
     */
    async run<K extends HookName>(name: K, payload: Hooks[K]['payload']): Promise<HookRun<K>> {
        const published = this.#published.get(name);
        if (published === undefined) {
            throw new Error(`The hook ${name} is not published`);
        }
        return inTime(`the taps of ${name}`, this.#patienceMs, published.run(payload) as Promise<HookRun<K>>);
    }

    /** Hangs something of the test on a hook, as another plugin: to hear what the plugin publishes, or to give something where it collects. */
    tap<K extends HookName>(name: K, tap: Tap<K>, plugin = 'test'): () => void {
        return this.host.tap({ plugin, version: '1.0.0' }, name, tap);
    }

    /** Every tap, in the order in which it runs. */
    taps(): readonly { readonly plugin: string; readonly hook: string }[] {
        return this.host.taps().map(({ plugin, hook }) => ({ plugin, hook }));
    }
}
