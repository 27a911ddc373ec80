/**
 * How often a plugin may fail before an admin must look at it. Only failures of the plugin's own code count, and only those that end the plugin:
 * a request handler or a tap that throws does not.
 */
import type { PluginFailure } from '../../records/plugin.ts';

const maxFailures = 3;
const withinMs = 60 * 60_000;
/** Stages at which code of the plugin runs. */
const stages = new Set<PluginFailure['stage']>(['loaded', 'mounted', 'running']);
/** Failures that an admin, another plugin or other files must end: another start does not. */
const uncounted = new Set([
    'SETTINGS_REQUIRED',
    'SETTINGS_INVALID',
    'REQUIREMENT_FAILED',
    'ENTRY_MISSING',
    'SDK_BUNDLED'
]);

/**
 * Counts a failure.
 *
 * @param before - times of earlier failures, milliseconds since 1970
 * @returns the failures of the last hour with this one; `quarantinedAt` is null while they are fewer than three
 */
export function countFailure(
    before: readonly number[],
    { stage, code }: Pick<PluginFailure, 'stage' | 'code'>,
    at: number
): { readonly failures: readonly number[]; readonly quarantinedAt: number | null } {
    const recent = before.filter((time) => time > at - withinMs && time <= at);
    const failures = stages.has(stage) && !uncounted.has(code) ? [...recent, at] : recent;
    return { failures, quarantinedAt: failures.length >= maxFailures ? at : null };
}
