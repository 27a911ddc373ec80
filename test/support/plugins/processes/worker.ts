/** A worker thread with the probe plugin behind the boundary, over a message port, without anything else. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';

import {
    type Capabilities,
    createGuest,
    Grants,
    type Guest,
    type HostApi,
    Link,
    type LocalApi,
    Scope
} from '@portico/sdk/host';

import { openPluginDatabase, type PluginDatabase } from '../../../../core/src/plugins/runtime/database.ts';
import { createFiles } from '../../../../core/src/plugins/runtime/files/files.ts';
import { LentFolders } from '../../../../core/src/plugins/runtime/files/lent-folders.ts';
import { FilesThread } from '../../../../core/src/plugins/runtime/files/thread/files-thread.ts';
import { machinePrograms } from '../../../../core/src/plugins/runtime/programs/machine.ts';
import { Programs } from '../../../../core/src/plugins/runtime/programs/programs.ts';
import { portOf } from '../../../../sdk/testing/src/panel/runtime.ts';
import { probe } from '../probe.ts';

const { dataDir } = workerData as { dataDir: string };
let database: Promise<PluginDatabase> | null = null;
const open = (): Promise<PluginDatabase> =>
    (database ??= openPluginDatabase({ dataDir, entities: probe.entities, migrations: probe.migrations }));
const absent = (): never => {
    throw new TypeError('This door is not in the bare worker');
};
const capabilities: Capabilities = { exec: ['sh'] };
const scope = new Scope();
const grants = new Grants('probe', capabilities, () => capabilities);
const reach = {
    scope,
    grants,
    own: dataDir,
    lent: new LentFolders(),
    machine: '',
    forbidden: (): readonly string[] => []
};
const programs = new Programs({
    grants,
    scope,
    machine: machinePrograms,
    folder: dataDir,
    used: () => undefined
});
const filesThread = new FilesThread(scope, (work) => work());
const local: LocalApi = {
    db: {
        read: async (work) => (await open()).read(work),
        write: async (work) => (await open()).write(work)
    },
    fetch: absent,
    files: (root) => createFiles(root, reach, filesThread),
    lend: (folder) => reach.lent.lend(folder),
    dial: absent,
    resolve: absent,
    exec: (file, args, options) => programs.exec(file, args, options),
    spawn: (file, args, options) => programs.spawn(file, args, options),
    async release() {
        const released = await scope.release();
        await (await database)?.close();
        return released;
    }
};
let guest: Guest | null = null;
const methods = new Proxy(
    {},
    {
        has: () => true,
        getOwnPropertyDescriptor: (_target, name) => ({
            configurable: true,
            enumerable: true,
            value: guest?.[name as keyof Guest]
        }),
        get: (_target, name) => guest?.[name as keyof Guest]
    }
);
const link = new Link<HostApi>(portOf(parentPort as MessagePort), methods);
guest = createGuest({
    name: 'probe',
    version: '1.0.0',
    dataDir,
    definition: probe,
    hostApi: link.remote,
    local,
    checkReturns: true
});
