/**
 * What plugins put into the engine's configuration, by named slots: handlers in front of every site, and apps of the engine beside its own.
 * They are kept with the settings of each revision, so applies, restores and boots render from what was proven last, whether the plugin that
 * gave them runs or not.
 */
import { canonicalize, errors } from '@portico/sdk';

import type { Author, Engine, Outcome } from '../change.ts';
import type { EngineFragments, EngineSettings, PluginFragments } from '../site.ts';
import { readFragments } from './check.ts';
import type { FragmentStore } from './store.ts';

/** Handlers of all plugins, by the plugins' names. */
export const fragmentHandlers = ({
    fragments = {}
}: EngineSettings): readonly Readonly<Record<string, unknown>>[] =>
    Object.keys(fragments)
        .sort()
        .flatMap((plugin) => fragments[plugin]?.handlers ?? []);

/** Apps of all plugins. */
export const fragmentApps = ({ fragments = {} }: EngineSettings): Readonly<Record<string, unknown>> =>
    Object.assign(
        {},
        ...Object.keys(fragments)
            .sort()
            .map((plugin) => fragments[plugin]?.apps ?? {})
    ) as Readonly<Record<string, unknown>>;

/** Settings with other fragments in them; none at all where there are none, so that a panel without plugins renders as ever. */
export const withFragments = (
    { fragments: _before, ...settings }: EngineSettings,
    fragments: EngineFragments
): EngineSettings => (Object.keys(fragments).length === 0 ? settings : { ...settings, fragments });

/** What plugins have in the engine's configuration. */
export class Fragments {
    readonly #engine: Pick<Engine, 'change' | 'draft'>;
    readonly #store: FragmentStore;
    readonly #places: () => readonly string[];

    /** @param places - absolute paths that no fragment may name */
    constructor(
        engine: Pick<Engine, 'change' | 'draft'>,
        store: FragmentStore,
        places: () => readonly string[]
    ) {
        this.#engine = engine;
        this.#store = store;
        this.#places = places;
    }

    /** All fragments, by plugin. */
    all(): EngineFragments {
        return this.#engine.draft().settings.fragments ?? {};
    }

    /**
     * Replaces the fragments of a plugin by these, in one change that the engine proves. Equal ones cost nothing.
     * @param mayReach - whether the plugin's grants cover a host that a fragment leads the engine to
     * @returns null when nothing changed
     * @throws VALIDATION_FAILED 40001, CONFLICT 40900 for an app that another plugin gives, ENGINE_REJECTED 42200, ENGINE_UNAVAILABLE 50301; then the previous ones stay
     */
    async put(
        plugin: string,
        given: readonly unknown[],
        mayReach: (host: string) => boolean = () => false
    ): Promise<Outcome | null> {
        const fragments = readFragments(given, { places: this.#places(), mayReach });
        const isEmpty = fragments.handlers.length === 0 && Object.keys(fragments.apps).length === 0;
        const before = this.all()[plugin];
        const isSame =
            before === undefined ? isEmpty : !isEmpty && canonicalize(before) === canonicalize(fragments);
        return isSame ? null : this.#set(plugin, isEmpty ? null : fragments);
    }

    /** Removes the fragments of a plugin. @returns the slots that it had, as `handlers` and `apps.<name>` */
    async drop(plugin: string): Promise<readonly string[]> {
        const before = this.all()[plugin];
        if (before === undefined) {
            return [];
        }

        await this.#set(plugin, null);
        return slotsOf(before);
    }

    async #set(plugin: string, fragments: PluginFragments | null): Promise<Outcome> {
        const by: Author = { id: null, username: null, tokenId: null, plugin, requestId: null };
        const { outcome } = await this.#engine.change({
            by,
            plan(draft) {
                const { [plugin]: _before, ...others } = draft.settings.fragments ?? {};
                const taken = Object.entries(others).find(([, { apps }]) =>
                    Object.keys(fragments?.apps ?? {}).some((name) => Object.hasOwn(apps, name))
                );
                if (taken !== undefined) {
                    throw errors.conflict('apps');
                }
                return { fragments: fragments === null ? others : { ...others, [plugin]: fragments } };
            },
            commit: (tx) => this.#store.write(tx, plugin, fragments)
        });
        return outcome;
    }
}

function slotsOf({ handlers, apps }: PluginFragments): readonly string[] {
    return [
        ...(handlers.length === 0 ? [] : ['handlers']),
        ...Object.keys(apps).map((name) => `apps.${name}`)
    ];
}
