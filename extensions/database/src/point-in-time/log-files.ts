/** The files of the logs of servers, in their archives. */
import { errors } from '@portico/sdk';

import type { DataFolder } from '../dumps/folder.ts';
import type { KindName } from '../kinds/kind.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Folders } from '../managed/folders.ts';
import type { Programs } from '../managed/kinds/programs.ts';
import type { ManagedServer } from '../managed/rows.ts';
import type { Archiver } from './archiver.ts';

/** What the files of logs for points in time are kept with. */
export interface LogFilesOptions {
    readonly folder: DataFolder;
    readonly folders: Folders;
    readonly programs: Programs;
    readonly archivers: Readonly<Record<KindName, Archiver>>;
    readonly target: FindTarget;
}

interface LogFile {
    readonly name: string;
    readonly number: number;
    readonly size: number;
    readonly modifiedAt: Date;
}

/** Finds and removes them. Paths are below the folder of the settings, but for those that say otherwise. */
export class LogFiles {
    readonly #options: LogFilesOptions;

    constructor(options: LogFilesOptions) {
        this.#options = options;
    }

    /** Bytes that the log of a server takes; 0 where it keeps none. */
    size(id: number): Promise<number> {
        return this.#options.folder.size(this.#folder(id));
    }

    /** Where the data of a server are. */
    data({ server, managed }: ManagedServer): string {
        return this.#options.folders.data(server.id, managed.folder);
    }

    /** The absolute path of a base copy. */
    base(id: number, copy: number): string {
        return `${this.#options.folders.archive(id)}/bases/${copy}`;
    }

    /** An absolute path as one below the folder of the settings. */
    below(path: string): string {
        return path.slice(this.#options.folder.path.length + 1);
    }

    /** The text of a small file. @param path - absolute */
    async read(path: string): Promise<string> {
        await using handle = await this.#options.folder.files().open(this.below(path), 'r');
        return await handle.readFile('utf8');
    }

    /** The last time that the log reaches: now while the server runs, else when it wrote last. */
    async end(found: ManagedServer): Promise<Date> {
        const { server } = found;
        if ((await this.#options.programs.info(server.id))?.state === 'running') {
            return new Date();
        }
        const all = [
            ...(await this.#list(server.id, server.kind)),
            ...(await this.#options.folder.entries(`${this.data(found)}/pg_wal`))
        ];
        return new Date(Math.max(0, ...all.map(({ modifiedAt }) => modifiedAt.getTime())));
    }

    /** The files from one on, as absolute paths in their order. @throws VALIDATION_FAILED 40001 where one of them is gone */
    async since(
        { server }: ManagedServer,
        first: string
    ): Promise<{ readonly paths: readonly string[]; readonly bytes: number }> {
        const start = this.#options.archivers[server.kind].numberOf(first) ?? 0;
        const files = (await this.#list(server.id, server.kind)).filter(({ number }) => number >= start);
        const numbers = [...new Set(files.map(({ number }) => number))];
        const gap = numbers.findIndex((number, index) => number !== start + index);
        if (gap !== -1) {
            const next = files.find(({ number }) => number === numbers[gap]);
            throw errors.invalid([
                { path: 'at', message: `The log has a gap before ${next?.name}: a file of it is gone` }
            ]);
        }
        const archiveFolder = this.#options.folders.archive(server.id);
        return {
            paths: files.map(({ name }) => `${archiveFolder}/log/${name}`),
            bytes: files.reduce((sum, { size }) => sum + size, 0)
        };
    }

    /** Removes the files before one. */
    async removeBefore({ server }: ManagedServer, first: string): Promise<void> {
        const { archivers, target, folder } = this.#options;
        const { numberOf, purge } = archivers[server.kind];
        const start = numberOf(first) ?? 0;
        const old = (await this.#list(server.id, server.kind)).filter(({ number }) => number < start);
        if (old.length === 0) {
            return;
        }
        if (purge !== null) {
            const { admin } = await target(server.id);
            await admin.use(null, (session) => purge(session, first));
            return;
        }
        for (const { name } of old) {
            await folder.remove(`${this.#folder(server.id)}/${name}`);
        }
    }

    #folder(id: number): string {
        return this.below(`${this.#options.folders.archive(id)}/log`);
    }

    async #list(id: number, kind: KindName): Promise<readonly LogFile[]> {
        const { numberOf } = this.#options.archivers[kind];
        return (await this.#options.folder.entries(this.#folder(id)))
            .flatMap(({ name, size, modifiedAt }) => {
                const number = numberOf(name);
                return number === null ? [] : [{ name, number, size, modifiedAt }];
            })
            .sort((one, other) => one.number - other.number);
    }
}
