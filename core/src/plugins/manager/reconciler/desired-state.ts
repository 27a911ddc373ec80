/** Decides the state that a plugin should be in, from the admin's record and the state of other plugins. Pure: it runs no plugin code. */
import { askedOf, beyond } from '../consent/capabilities.ts';
import type { PluginFailure, PluginRecord, PluginState, Runtime } from '../records/plugin.ts';

type Fault = Omit<PluginFailure, 'at'>;

/** A state in which nothing of a plugin runs, and the failure that is the reason; null without a failure. */
export interface IdleState {
    readonly state: PluginState;
    readonly fault: Fault | null;
}

/**
 * The desired state of a plugin.
 *
 * @param other - finds another plugin by its name
 * @param safe - no plugin may be loaded
 * @returns null when the plugin should run
 */
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

/** The first required plugin that does not run, as a failure; null when all of them run. */
export function missingRequirement(
    { name, plugin }: Runtime,
    other: (name: string) => Runtime | null
): Fault | null {
    for (const [required, range] of Object.entries(plugin?.manifest.requires ?? {})) {
        const runtime = other(required);
        if (runtime?.state !== 'running') {
            return {
                stage: 'resolved',
                code: 'REQUIREMENT_FAILED',
                message: `${name} requires ${required} ${range}, which ${whyIdle(runtime)}`
            };
        }
    }
    return null;
}

function whyIdle(runtime: Runtime | null): string {
    if (runtime === null) {
        return 'is not there';
    }
    const { state, failure } = runtime;
    return state === 'disabled'
        ? 'is disabled'
        : `does not run${failure === null ? '' : `: ${failure.message}`}`;
}
