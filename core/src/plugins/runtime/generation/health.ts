/** Asks a plugin for its health. */
import { messageOf } from '@portico/sdk';
import { type Guest, within } from '@portico/sdk/host';

import type { HealthReport } from './generation.ts';

/** Runs the checks of these names, all at once. One that fails, or does not answer in time, is a failed one. */
export function checkHealth(
    guest: Guest,
    names: readonly string[],
    { timeoutMs, ending }: { readonly timeoutMs: number; readonly ending: AbortSignal }
): Promise<readonly HealthReport[]> {
    return Promise.all(
        names.map(async (name): Promise<HealthReport> => {
            try {
                const report = await within(timeoutMs, (signal) =>
                    guest.health({ name, signal: AbortSignal.any([signal, ending]) })
                );
                return { ...report, name };
            } catch (error) {
                return { name, state: 'failed', evidence: messageOf(error) };
            }
        })
    );
}
