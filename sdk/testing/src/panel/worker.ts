/** A thread with a plugin in it. What the plugin reaches without the panel works here, as it would in a panel that keeps it in a thread. */
import { join } from 'node:path';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';

import {
    createLocalApi,
    LentFolders,
    Network,
    openPluginDatabase,
    Programs
} from '@portico/core/plugin-runtime';
import { isDefinition } from '@portico/sdk';
import { createGuest, Grants, type HostApi, Link, Scope } from '@portico/sdk/host';

import { importPlugin } from '../conformance/load.ts';
import { TestNetwork } from '../doubles/machine/network.ts';
import { TestPrograms } from '../doubles/machine/programs.ts';
import { readTestPackage } from './package.ts';
import { portOf, type WorkerPlugin } from './runtime.ts';

const { folder, name, version, dataDir, machine } = workerData as WorkerPlugin;
const definition = await importPlugin(folder, join(dataDir, '..', 'registry'));
if (!isDefinition(definition)) {
    throw new Error(definition.message);
}
const { capabilities = {} } = readTestPackage(folder).manifest;
const methods: Record<string, unknown> = {};
const link = new Link<HostApi>(portOf(parentPort as MessagePort), methods);
const { entities, migrations } = definition;
const database = await openPluginDatabase({ dataDir, entities, migrations });
const scope = new Scope();
const grants = new Grants(name, capabilities, () => capabilities);
const forbidden = (): readonly string[] => [];
const { signal } = new AbortController();
const { port: network } = new TestNetwork();
const run = <T>(work: () => T): T => work();
const local = createLocalApi({
    scope,
    reach: { grants, own: dataDir, lent: new LentFolders(), machine, forbidden },
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
