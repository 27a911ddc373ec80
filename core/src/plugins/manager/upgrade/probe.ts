/** Tries other code of a plugin on a copy of its data, while the present code goes on. */
import { fail } from '../../../platform/errors.ts';
import { GenerationFault, type HealthReport } from '../../runtime/generation/generation.ts';
import type { Runtime } from '../records/plugin.ts';
import type { NextCode, SwapPorts } from './ports.ts';

/**
 * Migrates a copy of the data, runs `setup` and every health check, and does not run `onStart`. A check that fails under the present code, too, is
 * no reason to refuse.
 *
 * @throws PLUGIN_FAILED 50303; STORAGE_FULL 50700; the signal's reason
 */
export async function probe(
    { lifecycle, data }: SwapPorts,
    runtime: Runtime,
    { found, definition, source, decision }: NextCode,
    signal: AbortSignal
): Promise<void> {
    const copy = await data.probe(runtime.name, source, signal);
    try {
        signal.throwIfAborted();
        const generation = await lifecycle
            .prepareGeneration(found, definition, {
                dataDir: copy.path,
                settings: decision.settings,
                grants: () => decision.grants
            })
            .catch(refuse(runtime, 'It was tried on a copy of its data'));
        let reports: readonly HealthReport[];
        try {
            signal.throwIfAborted();
            reports = await generation.health();
        } finally {
            await generation.close('it was tried');
        }
        await requireHealth(runtime, reports);
    } finally {
        await copy.discard();
    }
}

async function requireHealth(runtime: Runtime, reports: readonly HealthReport[]): Promise<void> {
    const failed = reports.filter(({ state }) => state === 'failed');
    if (failed.length === 0) {
        return;
    }
    const present = ((await runtime.generation?.health()) ?? [])
        .filter(({ state }) => state === 'failed')
        .map(({ name }) => name);
    const fresh = failed.find(({ name }) => !present.includes(name));
    if (fresh !== undefined) {
        throw fail.PLUGIN_FAILED(
            { plugin: runtime.name, stage: 'mounted', cause: 'HEALTH_FAILED', check: fresh.name },
            {
                message: `Its health check ${fresh.name} failed on a copy of the data: ${fresh.evidence ?? 'it says no more'}; nothing was changed`
            }
        );
    }
}

/** Makes the error of a generation one of the API. @param when - a sentence that says what was done */
export function refuse(runtime: Runtime, when: string): (error: unknown) => never {
    return (error) => {
        if (!(error instanceof GenerationFault)) {
            throw error;
        }
        const { stage, code, data, message } = error;
        throw fail.PLUGIN_FAILED(
            { plugin: runtime.name, stage, cause: code, ...(data === null ? {} : { detail: data }) },
            { message: `${when}, and failed (${code}): ${message}; nothing was changed`, cause: error }
        );
    };
}
