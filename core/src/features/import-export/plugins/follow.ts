/** The work for plugins after an import is durable. It may take long; a failure is reported and undoes nothing. */
import { messageOf } from '@portico/sdk';

import type { Following, PluginOutcome } from '../../../engine/section.ts';
import type { Call } from '../../../platform/call.ts';
import type { PluginCatalogue } from '../ports.ts';
import type { ReadPlugin } from './plan.ts';
import type { Restorer } from './restorer.ts';

interface Follow {
    readonly read: readonly ReadPlugin[];
    /** As they were planned. */
    readonly outcomes: readonly PluginOutcome[];
    /** Names of the plugins whose records changed. */
    readonly stored: readonly string[];
    readonly plugins: PluginCatalogue;
    readonly restorer: Restorer;
    readonly call: Call;
    readonly run: Following;
}

/** Running plugins take their settings, missing ones are installed, and then each one gets its data back. */
export async function followPlugins({
    read,
    outcomes,
    stored,
    plugins,
    restorer,
    call,
    run
}: Follow): Promise<readonly PluginOutcome[]> {
    const notes = new Map<string, readonly string[]>();
    const say = (name: string, texts: readonly string[]): void => {
        notes.set(name, [...(notes.get(name) ?? []), ...texts]);
        texts.forEach((text) => run.log(`${name}: ${text}`));
    };
    await plugins
        .follow(stored)
        .catch((error: unknown) =>
            stored.forEach((name) => say(name, [`it did not follow: ${messageOf(error)}`]))
        );
    const installs = new Map<string, PluginOutcome['install']>();
    for (const { name } of outcomes.filter(({ install }) => install !== null)) {
        const plugin = read.find((each) => each.plugin.name === name)?.plugin;
        if (plugin !== undefined) {
            run.log(`${name}: ${plugin.package} ${plugin.version} is being installed`);
            const failure = await plugins.install(plugin, call, run.signal).then(() => null, messageOf);
            installs.set(name, failure === null ? 'installed' : 'failed');
            say(name, failure === null ? [] : [`it was not installed: ${failure}`]);
        }
    }
    const result: PluginOutcome[] = [];
    for (const { name, data } of outcomes) {
        let back: PluginOutcome['data'] = data;
        if (data !== null) {
            const restored = await restorer
                .restore(name, run.signal)
                .catch((error: unknown) => ({ state: 'waiting' as const, notes: [messageOf(error)] }));
            back = restored?.state ?? null;
            say(name, restored?.notes ?? []);
            run.log(
                `${name}: its data ${back === 'restored' ? 'is back' : back === 'failed' ? 'was not taken back' : 'waits'}`
            );
        }
        const { state = null, message = null } = plugins.state(name) ?? {};
        result.push({
            name,
            install: installs.get(name) ?? null,
            data: back,
            state,
            notes: [...(state === 'failed' && message !== null ? [message] : []), ...(notes.get(name) ?? [])]
        });
    }
    return result;
}
