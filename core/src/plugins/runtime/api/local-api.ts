/** The local API of a generation in this process. What it starts belongs to the host and is released with the scope. */
import type { LocalApi, Release, Scope } from '@portico/sdk/host';

import type { PluginDatabase } from '../database.ts';
import { createFiles } from '../files/files.ts';
import type { FilesOptions } from '../files/granted-root.ts';
import { FilesThread } from '../files/thread/files-thread.ts';
import type { Network } from '../network.ts';
import type { Programs } from '../programs/programs.ts';

/** What the local API of one generation works with. */
export interface LocalApiOptions {
    readonly scope: Scope;
    /** What the plugin's files may reach. */
    readonly reach: Omit<FilesOptions, 'scope'>;
    readonly network: Network;
    readonly programs: Programs;
    /** The database; opened before `setup`, after the settings. */
    database(): PluginDatabase | undefined;
    /** Writes, and notes that the plugin accepted a change. */
    write: LocalApi['db']['write'];
    /** Runs code of the host. */
    leave<T>(work: () => T): T;
    /** Runs code of the plugin. */
    enter<T>(work: () => T): T;
}

/** Creates the local API: the members of the context whose live objects cannot cross a boundary. */
export function createLocalApi({
    scope,
    reach,
    network,
    programs,
    enter,
    leave,
    ...options
}: LocalApiOptions): LocalApi {
    const thread = new FilesThread(scope, leave);
    const required = (): PluginDatabase => options.database() as PluginDatabase;
    return {
        db: {
            read: (work) => leave(() => required().read((em) => enter(() => work(em)))),
            write: (work) => leave(() => options.write((em) => enter(() => work(em))))
        },
        fetch: (input, init) => leave(() => network.fetch(input, init)),
        dial: (target) => leave(() => network.dial(target)),
        resolve: (host) => leave(() => network.resolve(host)),
        files: (root) => createFiles(root, { ...reach, scope }, thread),
        lend: (folder) => reach.lent.lend(folder),
        exec: (file, args, given) => leave(() => programs.exec(file, args, given)),
        spawn: (file, args, given) => leave(() => programs.spawn(file, args, given)),
        async release(): Promise<Release> {
            const release = await scope.release();
            const database = options.database();
            if (database === undefined) {
                return release;
            }
            await database.close();
            return { ...release, released: [...release.released, { kind: 'database', name: 'data.db' }] };
        }
    };
}
