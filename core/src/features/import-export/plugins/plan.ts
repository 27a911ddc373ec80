/** Plans what an import does with plugins, compared with those of this panel. */
import { isDeepStrictEqual } from 'node:util';

import type { Entry, ImportMode, PluginOutcome } from '../../../engine/section.ts';
import { fail } from '../../../platform/errors.ts';
import type { KnownPlugin, MovedPlugin, PluginCatalogue } from '../ports.ts';
import type { Contribution } from './contributions.ts';

/** A plugin of a document, compared with the one of this panel. */
export interface ReadPlugin {
    readonly plugin: MovedPlugin;
    /** The faults of its settings. */
    readonly faults: readonly string[];
    /** Its own data; null when the document has none. */
    readonly data: Contribution | null;
    /** The revision of its record when it was read; null: it had none. */
    readonly revision: number | null;
}

/** What becomes of one plugin. */
export type PluginChange =
    | { readonly action: 'store'; readonly plugin: MovedPlugin; readonly revision: number }
    | { readonly action: 'keep' | 'forget'; readonly plugin: MovedPlugin };

/** What becomes of all plugins. */
export interface PluginPlan {
    readonly entries: readonly Entry[];
    readonly changes: readonly PluginChange[];
    readonly outcomes: readonly PluginOutcome[];
}

interface Ground {
    readonly plugins: Pick<PluginCatalogue, 'list' | 'find' | 'requiredBy'>;
    readonly kept: readonly MovedPlugin[];
    readonly mode: ImportMode;
    /** What is missing is installed. */
    readonly installs: boolean;
}

/** What becomes of one plugin. */
interface Part {
    readonly entry: Entry;
    readonly change: PluginChange | null;
    readonly outcome: PluginOutcome;
}

/** Plans all plugins. @throws VERSION_STALE when a plugin was changed since it was read */
export function planPlugins(
    read: readonly ReadPlugin[],
    { plugins, kept, mode, installs }: Ground
): PluginPlan {
    const holders = new Map(
        plugins
            .list()
            .filter(({ isInstalled }) => isInstalled)
            .map((plugin) => [plugin.name, plugin.package])
    );
    const waiting = new Map(kept.map((plugin) => [plugin.name, plugin]));
    const disabled = new Set(read.flatMap(({ plugin }) => (plugin.enabled ? [] : [plugin.name])));
    const parts = read.map((each): Part => {
        const { plugin } = each;
        const here = plugins.find(plugin.name, plugin.package);
        if ((here?.revision ?? null) !== each.revision) {
            throw fail.VERSION_STALE(
                { version: here?.revision ?? 0 },
                { message: `${plugin.name} was changed meanwhile` }
            );
        }
        const holder = holders.get(plugin.name) ?? null;
        const isMissing = holder === null;
        const absence =
            here?.isInstalled === true
                ? null
                : isMissing
                  ? `not installed: ${plugin.package} ${plugin.version}${installs ? '; it is installed from the registry' : '; its settings are kept until it is'}`
                  : `not installed: ${plugin.package} ${plugin.version}, since ${holder} has its name; its settings are kept until it is`;
        const install = isMissing && installs ? 'planned' : null;
        const before = waiting.get(plugin.name);
        waiting.delete(plugin.name);
        if (here === null) {
            return absent(each, before, absence ?? '', install);
        }
        const orphans =
            here.enabled && !plugin.enabled
                ? plugins.requiredBy(plugin.name).filter((name) => !disabled.has(name))
                : [];
        return present(
            each,
            here,
            [
                ...(absence === null ? [] : [absence]),
                ...(orphans.length === 0 ? [] : [`it is disabled, and ${orphans.join(', ')} requires it`])
            ],
            install
        );
    });
    // Installed plugins stay: removing one, with its data, is a separate decision.
    const forgotten = mode === 'replace' ? [...waiting.values()] : [];
    return {
        entries: [
            ...parts.map(({ entry }) => entry),
            ...forgotten.map(({ name }): Entry => ({ effect: 'delete', name }))
        ],
        changes: [
            ...parts.flatMap(({ change }) => change ?? []),
            ...forgotten.map((plugin): PluginChange => ({ action: 'forget', plugin }))
        ],
        outcomes: parts.flatMap(({ outcome, change }) =>
            outcome.install !== null || outcome.data !== null || change?.action === 'store' ? [outcome] : []
        )
    };
}

function absent(
    { plugin, faults, data }: ReadPlugin,
    before: MovedPlugin | undefined,
    absence: string,
    install: PluginOutcome['install']
): Part {
    const same = faults.length > 0 || isDeepStrictEqual(before, plugin);
    return {
        entry: {
            effect: same ? 'unchanged' : before === undefined ? 'create' : 'update',
            name: plugin.name,
            notes: [absence, ...faults.map((fault) => `its settings are left out: ${fault}`)]
        },
        change: same ? null : { action: 'keep', plugin },
        outcome: {
            name: plugin.name,
            install,
            data: data === null ? null : install !== null && plugin.enabled ? 'planned' : 'waiting',
            state: null,
            notes: []
        }
    };
}

function present(
    { plugin, faults, data }: ReadPlugin,
    here: KnownPlugin,
    absence: readonly string[],
    install: PluginOutcome['install']
): Part {
    const enabled = plugin.enabled && (here.enabled || !here.lacksConsent);
    const next: MovedPlugin = {
        name: here.name,
        package: here.package,
        version: here.version,
        enabled,
        settings: plugin.settings,
        secrets: plugin.secrets
    };
    const same =
        faults.length > 0 ||
        (here.enabled === enabled &&
            isDeepStrictEqual([here.settings, here.secrets], [next.settings, next.secrets]));
    const notes = [
        ...absence,
        ...faults.map((fault) => `its settings are left as they are: ${fault}`),
        ...(plugin.enabled && !enabled
            ? ['it stays disabled: it asks for more than it was granted here']
            : []),
        ...(here.isInstalled && here.version !== plugin.version
            ? [`here it has the version ${here.version}, in the document ${plugin.version}`]
            : [])
    ];
    const runs =
        (same ? here.enabled : enabled) && !here.lacksConsent && (here.isInstalled || install !== null);
    return {
        entry: {
            effect: same ? 'unchanged' : 'update',
            name: plugin.name,
            ...(notes.length === 0 ? {} : { notes })
        },
        change: same ? null : { action: 'store', plugin: next, revision: here.revision },
        outcome: {
            name: plugin.name,
            install,
            data: data === null ? null : runs ? 'planned' : 'waiting',
            state: null,
            notes: []
        }
    };
}
