/** How often a plugin may fail before an admin must look. What counts is a fall into the state `failed` by code of its own, never a handler or tap that throws. */
import type { PluginFailure } from '../records/plugin.ts';

const mostFalls = 3;
const withinMs = 60 * 60_000;
/** Stages at which code of the plugin runs. */
const stages = new Set<PluginFailure['stage']>(['loaded', 'mounted', 'running']);
/** What lies with an admin, with another plugin, or in files that no retry changes. */
const blameless = new Set([
    'SETTINGS_REQUIRED',
    'SETTINGS_INVALID',
    'REQUIREMENT_FAILED',
    'ENTRY_MISSING',
    'SDK_BUNDLED'
]);

/** The falls of the last hour with this one, and whether they are too many. */
export function count(
    before: readonly number[],
    { stage, code }: Pick<PluginFailure, 'stage' | 'code'>,
    at: number
): { readonly failures: readonly number[]; readonly quarantinedAt: number | null } {
    const recent = before.filter((time) => time > at - withinMs && time <= at);
    const failures = stages.has(stage) && !blameless.has(code) ? [...recent, at] : recent;
    return { failures, quarantinedAt: failures.length >= mostFalls ? at : null };
}
