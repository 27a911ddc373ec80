/**
 * The journey of all packages, on one screen: discovered → resolved → loaded. What stops on its way stays in the answer with the reason;
 * mounting and running are the panel's.
 */
import { basename } from 'node:path';

import type { PluginDefinition } from '@portico/sdk';

import type { StageFailure } from './failure.ts';
import type { PluginPackage } from './manifest.ts';
import type { Found, Outcome } from './ports.ts';
import { type Host, resolve } from './resolve/resolve.ts';

/** What a package carries from stage to stage. */
interface Journey {
    readonly found: Found;
    readonly plugin: PluginPackage | null;
    /** Place in the order of starting; -1 before it has one. */
    place: number;
    stage: Outcome['stage'];
    failure: StageFailure | null;
    definition: PluginDefinition | null;
}

type Loading = { readonly definition: PluginDefinition } | { readonly failure: StageFailure };

/**
 * Answers one outcome for each package: those in the order of starting first, then what stopped earlier.
 *
 * @param enabled - which resolved packages may be imported
 * @param onOutcome - called once for each package, as soon as its journey ends: one that hangs holds no other up
 */
export async function journey(
    found: readonly Found[],
    host: Host,
    load: (found: Found) => Promise<Loading>,
    enabled: (found: Found, plugin: PluginPackage) => boolean,
    onOutcome: (outcome: Outcome) => void
): Promise<readonly Outcome[]> {
    const discovered = found.map(discover);
    const resolved = resolveAll(discovered, host);
    const importable = resolved.filter(
        ({ found: one, plugin, stage }) => stage === 'resolved' && plugin !== null && enabled(one, plugin)
    );
    resolved.filter((each) => !importable.includes(each)).forEach((each) => onOutcome(outcomeOf(each)));
    await Promise.all(
        importable.map(async (each) => {
            await importOne(each, load);
            onOutcome(outcomeOf(each));
        })
    );
    return resolved.map(outcomeOf);
}

/** Its manifest was read; no code of it ran. */
function discover(found: Found): Journey {
    return 'fault' in found.result
        ? {
              found,
              plugin: null,
              place: -1,
              stage: null,
              failure: { stage: 'discovered', ...found.result.fault },
              definition: null
          }
        : {
              found,
              plugin: found.result.plugin,
              place: -1,
              stage: 'discovered',
              failure: null,
              definition: null
          };
}

/** It fits this panel, and has a place in the order. */
function resolveAll(journeys: readonly Journey[], host: Host): readonly Journey[] {
    const { order, unresolved } = resolve(
        journeys.map(({ plugin }) => plugin).filter((plugin) => plugin !== null),
        host
    );
    for (const each of journeys) {
        const place = each.plugin === null ? -1 : order.indexOf(each.plugin);
        if (place >= 0) {
            each.place = place;
            each.stage = 'resolved';
        } else if (each.plugin !== null) {
            const { plugin } = each;
            const why = unresolved.find((one) => one.plugin === plugin);
            each.failure = {
                stage: 'resolved',
                code: why?.code ?? 'CYCLE',
                message: why?.message ?? `${plugin.manifest.name} has no place in the order`
            };
        }
    }
    return journeys.toSorted(
        (one, two) =>
            (one.place < 0 ? Number.MAX_SAFE_INTEGER : one.place) -
            (two.place < 0 ? Number.MAX_SAFE_INTEGER : two.place)
    );
}

/** Its module was imported and is a definition. */
async function importOne(each: Journey, load: (found: Found) => Promise<Loading>): Promise<void> {
    const loading = await load(each.found);
    if ('failure' in loading) {
        each.failure = loading.failure;
    } else {
        each.stage = 'loaded';
        each.definition = loading.definition;
    }
}

function outcomeOf({ found, plugin, stage, failure, definition }: Journey): Outcome {
    return {
        name: plugin?.manifest.name ?? found.lock?.name ?? basename(found.folder),
        found,
        plugin,
        stage,
        failure,
        definition
    };
}
