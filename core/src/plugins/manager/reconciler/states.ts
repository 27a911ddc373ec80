/** Changes the state of a plugin, and says so: here is what happens when a plugin fails, for example because it throws at its start. */
import type { Clock } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type { PluginFailure, PluginRecord, PluginState, Runtime } from '../records/plugin.ts';
import type { Records } from '../records/records.ts';
import { countFailure } from './failures/quarantine.ts';

/** What state changes need. */
export interface StateOptions {
    readonly records: Records;
    readonly clock: Clock;
    readonly log: Logger;
    /** Is told each change; must not throw. */
    changed(plugin: string, state: PluginState, before: PluginState, failure: PluginFailure | null): void;
}

/** Sets the states of plugins. Only inside `Lifecycle.withPlugin`. */
export class PluginStates {
    readonly #options: StateOptions;

    constructor(options: StateOptions) {
        this.#options = options;
    }

    /** Sets a state, and the failure that it is shown with. */
    set(runtime: Runtime, state: PluginState, failure: PluginFailure | null): void {
        const { state: before } = runtime;
        runtime.state = state;
        runtime.failure = failure;
        if (before !== state) {
            this.#options.changed(runtime.name, state, before, failure);
        }
    }

    /** Notes a failure on the plugin's record; after too many of them the plugin is in quarantine. Nothing of the plugin may run. */
    async markFailed(
        runtime: Runtime,
        record: PluginRecord | null,
        failure: Omit<PluginFailure, 'at'>
    ): Promise<void> {
        const { clock, records, log } = this.#options;
        const at = clock.now();
        const { failures, quarantinedAt } = countFailure(record?.failures ?? [], failure, at);
        const noted = { ...failure, at };
        log.warn('A plugin failed', {
            plugin: runtime.name,
            ...failure,
            quarantined: quarantinedAt !== null
        });
        if (record !== null) {
            await records
                .note(record.name, record.package, { failure: noted, failures, quarantinedAt })
                .catch((error: unknown) =>
                    log.error('A failure of a plugin could not be recorded', { plugin: runtime.name, error })
                );
        }
        this.set(runtime, quarantinedAt === null ? 'failed' : 'quarantined', noted);
    }
}

/** Whether both are the same fault, whenever it was; also when there is none. */
export function isSameFailure(one: Omit<PluginFailure, 'at'> | null, two: PluginFailure | null): boolean {
    return one?.stage === two?.stage && one?.code === two?.code && one?.message === two?.message;
}
