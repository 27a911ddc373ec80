/** The core's hooks in a test: the plugin's taps hang on them, and the test runs them. */
import { createHookHost, type HookHost, type Published } from '../boundary/hook-host.ts';
import type { HookRun } from '../context.ts';
import type { HookKind, HookName, Hooks, Tap } from '../hooks.ts';

/** Hooks that a plugin hangs on only with the capability `taps`, whatever their kind. */
const watched = new Set(['settings.changed', 'audit.recorded']);

const kinds: Readonly<Record<string, HookKind>> = {
    'host.beforeSave': 'waterfall',
    'host.guard': 'guard',
    'host.afterChange': 'notify',
    'auth.beforeLogin': 'guard',
    'auth.afterLogin': 'notify',
    'audit.recorded': 'notify',
    'engine.applied': 'notify',
    'engine.failed': 'notify',
    'certificate.issued': 'notify',
    'certificate.expiring': 'notify',
    'certificate.failed': 'notify',
    'settings.changed': 'notify',
    'notification.raised': 'notify',
    'routes.changed': 'notify',
    'plugin.stateChanged': 'notify',
    'engine.collect': 'collect',
    'backup.collect': 'collect',
    'backup.restore': 'collect',
    'export.collect': 'collect',
    'import.restore': 'collect',
    'health.collect': 'collect',
    'panel.started': 'notify',
    'panel.stopping': 'notify'
};

/** A tap that threw, was too slow, or refused by failing. */
export interface TestTapFailure {
    readonly plugin: string;
    readonly hook: string;
    readonly error: unknown;
}

export class HooksFake {
    readonly host: HookHost;
    /** Taps that failed, in order. */
    readonly failures: TestTapFailure[] = [];
    readonly #published = new Map<string, Published<HookName>>();

    constructor() {
        this.host = createHookHost(
            ({ plugin, hook, error }) => void this.failures.push({ plugin, hook, error })
        );
        for (const [name, kind] of Object.entries(kinds)) {
            this.publish(
                name,
                kind,
                name === 'auth.beforeLogin' ? { failOpen: true, timeoutSeconds: 3 } : {}
            );
        }
    }

    publish(
        name: string,
        kind: HookKind,
        options: { readonly timeoutSeconds?: number; readonly failOpen?: boolean }
    ): void {
        this.#published.set(name, this.host.define(name as HookName, kind as never, options));
    }

    withdraw(name: string): void {
        this.host.withdraw(name);
        this.#published.delete(name);
    }

    needsCapability(name: string): boolean {
        const kind = this.host.kindOf(name);
        return watched.has(name) || (kind !== null && kind !== 'notify');
    }

    /**
     * Runs a hook of the core as the core does, or one that the plugin publishes.
     *
     * @throws REFUSED_BY_PLUGIN 40920 when a guard refuses; Error for a hook that nobody publishes
     */
    async run<K extends HookName>(name: K, payload: Hooks[K]['payload']): Promise<HookRun<K>> {
        const published = this.#published.get(name);
        if (published === undefined) {
            throw new Error(`Nobody publishes the hook ${name}`);
        }
        return published.run(payload) as Promise<HookRun<K>>;
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
