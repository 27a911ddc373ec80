/** Takes every package of some folders through the registry's stages, as the plugin manager does it with one plugin at a time. */
import { basename } from 'node:path';

import type { PluginDefinition } from '@portico/sdk';

import type {
    Found,
    Place,
    PluginPackage,
    Registry,
    Stage,
    StageFailure
} from '../../../registry/src/index.ts';

/** The last stage of one package, and its failure. */
export interface Outcome {
    /** The plugin's name; the folder's name when the manifest could not be read. */
    readonly name: string;
    /** Null when its manifest could not be read. */
    readonly plugin: PluginPackage | null;
    /** The last stage that it passed; null when not even its manifest could be read. */
    readonly stage: Stage | null;
    readonly failure: StageFailure | null;
    readonly definition: PluginDefinition | null;
}

/**
 * Returns one outcome for each package. Packages that can start come first, in the order of their start.
 *
 * @param isEnabled - which resolved packages are imported
 * @param onOutcome - called once for each package, as soon as its outcome is known
 */
export async function outcomesOf(
    registry: Registry,
    places: readonly Place[],
    isEnabled: () => boolean = () => true,
    onOutcome: (outcome: Outcome) => void = () => undefined
): Promise<readonly Outcome[]> {
    const { found } = await registry.discover(places);
    const plugins = found.flatMap(({ result }) => ('plugin' in result ? [result.plugin] : []));
    const { order, unresolved } = registry.resolve(plugins);
    const outcomes = await Promise.all(
        found.map(async (each) => {
            const plugin = 'plugin' in each.result ? each.result.plugin : null;
            const why = unresolved.find((one) => one.plugin === plugin);
            const outcome = await outcomeOf(registry, each, why ?? null, isEnabled());
            onOutcome(outcome);
            return outcome;
        })
    );
    const place = ({ plugin }: Outcome): number => (plugin === null ? -1 : order.indexOf(plugin)) >>> 0;
    return outcomes.toSorted((one, two) => place(one) - place(two));
}

async function outcomeOf(
    registry: Registry,
    found: Found,
    why: { readonly code: StageFailure['code']; readonly message: string } | null,
    isEnabled: boolean
): Promise<Outcome> {
    const { result } = found;
    if ('fault' in result) {
        const name = found.lock?.name ?? basename(found.folder);
        const failure = { stage: 'discovered' as const, ...result.fault };
        return { name, plugin: null, stage: null, failure, definition: null };
    }
    const { plugin } = result;
    const known = { name: plugin.manifest.name, plugin, definition: null };
    if (why !== null) {
        const failure = { stage: 'resolved' as const, code: why.code, message: why.message };
        return { ...known, stage: 'discovered', failure };
    }
    if (!isEnabled) {
        return { ...known, stage: 'resolved', failure: null };
    }
    const loading = await registry.load(found);
    return 'failure' in loading
        ? { ...known, stage: 'resolved', failure: loading.failure }
        : { ...known, stage: 'loaded', failure: null, definition: loading.definition };
}
