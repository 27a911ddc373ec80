/** Fakes of the plugins that the one under test works with. Each is a plugin of the panel, of which the test writes the contract. */
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

import {
    type Gateway,
    type Generation,
    type Permissions,
    permissionsOf,
    type PluginHost
} from '@portico/core/plugin-runtime';
import { type Call, definePlugin } from '@portico/sdk';

/** Functions of one plain input and the call. */
export type FakeContract = Readonly<Record<string, (input: never, call: Call) => unknown>>;

/** The plugins that this one works with. */
export class TestPartners {
    readonly #plugins: PluginHost;
    readonly #gateway: Pick<Gateway, 'park'>;
    readonly #permissions: Permissions;
    readonly #root: string;
    readonly #running = new Map<string, Generation>();

    /** @internal */
    constructor(plugins: PluginHost, gateway: Pick<Gateway, 'park'>, permissions: Permissions, root: string) {
        this.#plugins = plugins;
        this.#gateway = gateway;
        this.#permissions = permissions;
        this.#root = root;
    }

    /** A partner comes, is swapped for another generation, or goes (`null`). Resolves when the plugin was told. */
    async set(name: string, contract: FakeContract | null): Promise<void> {
        const before = this.#running.get(name);
        const parking = before === undefined || contract === null ? null : this.#gateway.park(name);
        try {
            this.#running.delete(name);
            await before?.close('the test takes it away');
            if (contract !== null) {
                this.#running.set(name, await this.#start(name, contract));
            }
        } finally {
            parking?.open();
        }
        // The plugin hears of it across its boundary, in order with all else that it is asked.
        await turn();
    }

    /** Ends every fake. @internal */
    async close(): Promise<void> {
        await Promise.all([...this.#running.values()].map((each) => each.close('the test ends')));
    }

    async #start(name: string, contract: FakeContract): Promise<Generation> {
        const manifest = { name, sdk: '*', requires: {}, optional: {} };
        const plugin = { package: `@test/${name}`, version: '1.0.0', title: name, node: null, manifest };
        this.#permissions.register(name, permissionsOf(plugin));
        const generation = await this.#plugins.prepare({
            plugin,
            folder: this.#root,
            // What a fake takes and gives is between it and the plugin under test.
            definition: definePlugin({ setup: () => contract as never }),
            dataDir: join(this.#root, 'partners', name),
            settings: {},
            grants: () => ({})
        });
        await generation.start();
        await generation.mount();
        return generation;
    }
}
