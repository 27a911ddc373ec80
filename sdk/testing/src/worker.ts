/** A thread with a plugin in it. What the plugin reaches without the panel works here, as it would in a panel that keeps it in a thread. */
import { registerHooks } from 'node:module';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';

import { createLocalDoors, Network, openPluginDatabase, Programs } from '@portico/core/plugin-runtime';
import type { PluginDefinition } from '@portico/sdk';
import { createGuest, createLink, Grants, type HostApi, Scope } from '@portico/sdk/host';

import { TestNetwork } from './network.ts';
import { TestPrograms } from './programs.ts';
import { portOf, type WorkerPlugin } from './runtime.ts';

// As in a panel: whatever copy of the SDK lies beside the plugin, it gets the host's, so that there is one of everything.
const sdk = '@portico/sdk';
const here = import.meta.url;
registerHooks({
    resolve: (specifier, context, next) =>
        next(
            specifier,
            specifier === sdk || specifier.startsWith(`${sdk}/`) ? { ...context, parentURL: here } : context
        )
});

const { entry, name, version, dataDir, machine, capabilities } = workerData as WorkerPlugin;
const { default: definition } = (await import(entry)) as { readonly default: PluginDefinition };
const methods: Record<string, unknown> = {};
const link = createLink<HostApi>(portOf(parentPort as MessagePort), methods);
const { entities, migrations } = definition;
const database = await openPluginDatabase({ dataDir, entities, migrations });
const scope = new Scope();
const grants = new Grants(name, capabilities, () => capabilities);
const forbidden = (): readonly string[] => [];
const { signal } = new AbortController();
const { port: network } = new TestNetwork();
const run = <T>(work: () => T): T => work();
const local = createLocalDoors({
    grants,
    scope,
    dataDir,
    machine,
    forbidden,
    network: new Network({ grants, scope, network, signal, forbidden }),
    programs: new Programs({
        grants,
        scope,
        machine: new TestPrograms(),
        folder: dataDir,
        used: () => undefined
    }),
    database: () => database,
    write: (work) => database.write(work),
    enter: run,
    leave: run
});
Object.assign(
    methods,
    createGuest({ name, version, dataDir, definition, hostApi: link.remote, local, checkReturns: true })
);
parentPort?.postMessage('ready');
