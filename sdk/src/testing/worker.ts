/** A thread with a plugin in it: what `createWorkerRealm` starts. The plugin's own doors work here, as they would in a panel that keeps it in a thread. */
import { registerHooks } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

import { type Capabilities, Grants } from '../boundary/grants.ts';
import { createGuest } from '../boundary/guest.ts';
import { createLink } from '../boundary/link.ts';
import type { HostDoors } from '../boundary/protocol.ts';
import type { PluginDefinition } from '../definition.ts';
import { openTestDatabase, type TestDatabase } from './database.ts';
import { FaultSwitch } from './faults.ts';
import { watchLeftovers } from './leftovers.ts';
import { createLocalDoors } from './locals.ts';
import { NetworkFake } from './network.ts';
import { ProgramsFake } from './programs.ts';

/** What the thread is told. */
export interface WorkerPlugin {
    /** Address of the module that exports the definition. */
    readonly entry: string;
    readonly name: string;
    readonly version: string;
    readonly dataDir: string;
    readonly machine: string;
    readonly capabilities: Capabilities;
}

// As in a panel: whatever copy of the SDK lies beside the plugin, it gets the host's, so that there is one of everything.
const sdk = '@portico/sdk';
const ours = import.meta.url;
registerHooks({
    resolve: (specifier, context, next) =>
        next(
            specifier,
            specifier === sdk || specifier.startsWith(`${sdk}/`) ? { ...context, parentURL: ours } : context
        )
});

const { entry, name, version, dataDir, machine, capabilities } = workerData as WorkerPlugin;
const { default: definition } = (await import(entry)) as { readonly default: PluginDefinition };
const methods: Record<string, unknown> = {};
const link = createLink<HostDoors>(parentPort as never, methods);
let database: Promise<TestDatabase> | null = null;
const { local } = createLocalDoors({
    grants: new Grants(name, capabilities, () => capabilities),
    dataDir,
    machine,
    network: new NetworkFake(),
    programs: new ProgramsFake(),
    faults: new FaultSwitch(),
    watch: watchLeftovers(),
    signal: new AbortController().signal,
    database: () => (database ??= openTestDatabase(dataDir, definition))
});
Object.assign(
    methods,
    createGuest({ name, version, dataDir, definition, doors: link.remote, local, checkReturns: true })
);
parentPort?.postMessage('ready');
