/** Where a plugin belongs by what was decided and by what else there is. Pure: no code of it is asked. */
import { askedOf, beyond } from '../consent/capabilities.ts';
import type { PluginFailure, PluginRecord, PluginState, Runtime } from '../records/plugin.ts';

type Fault = Omit<PluginFailure, 'at'>;

/** A state in which nothing of a plugin runs. */
export interface IdleState {
    readonly state: PluginState;
    readonly fault: Fault | null;
}

/** Where it rests, and why; null when it is to run. `safe`: nothing is loaded. */
export function desiredStateOf(
    runtime: Runtime,
    record: PluginRecord | null,
    other: (name: string) => Runtime | null,
    safe: boolean
): IdleState | null {
    if (runtime.plugin === null || record === null) {
        return {
            state: 'failed',
            fault: runtime.obstacle ?? {
                stage: 'discovered',
                code: 'PACKAGE_MISSING',
                message: `The package of ${runtime.name} is gone`
            }
        };
    }
    if (!record.enabled || beyond(askedOf(runtime.plugin.manifest), record.decided, record.grants) !== null) {
        return { state: 'disabled', fault: null };
    }
    if (record.quarantinedAt !== null) {
        return { state: 'quarantined', fault: record.failure };
    }
    const obstacle = runtime.obstacle ?? (safe ? null : missingRequirement(runtime, other));
    if (obstacle !== null) {
        return { state: 'failed', fault: obstacle };
    }
    return safe ? { state: 'resolved', fault: null } : null;
}

/** What it requires and does not run; null when all of that runs. */
export function missingRequirement(
    { name, plugin }: Runtime,
    other: (name: string) => Runtime | null
): Fault | null {
    for (const [required, range] of Object.entries(plugin?.manifest.requires ?? {})) {
        const there = other(required);
        if (there?.state !== 'running') {
            const why =
                there === null
                    ? 'is not there'
                    : there.state === 'disabled'
                      ? 'is disabled'
                      : `does not run${there.failure === null ? '' : `: ${there.failure.message}`}`;
            return {
                stage: 'resolved',
                code: 'REQUIREMENT_FAILED',
                message: `${name} requires ${required} ${range}, which ${why}`
            };
        }
    }
    return null;
}
