/** The folders of servers that the panel runs: data, socket and configuration of each, below the folder of the settings. */
import type { Files } from '@portico/sdk';

import type { DataFolder } from '../dumps/folder.ts';
import type { MachineAccount } from './accounts.ts';
import type { Certificate } from './network/certificate.ts';

/** The longest path of a unix socket, in bytes. Source: unix(7). */
const longestSocket = 107;
const socketName = '/.s.PGSQL.65535';
const root = 'servers';
/** Name of the data folder of a new server. */
export const firstData = 'data';
/** Holds what an upgrade needs until it is done: sockets, and a configuration for each of its two servers. Its name is no longer than `run`, for the sockets. */
const passing = 'up';
/** The files of a certificate in `tlsFolder`. */
export const [certificateName, keyName] = ['certificate.pem', 'key.pem'] as const;

/** The folders of one server, absolute. */
export interface ServerFolders {
    readonly dataFolder: string;
    readonly runFolder: string;
    readonly configFolder: string;
    /** Holds the key of its certificate; belongs to the server's account alone. */
    readonly tlsFolder: string;
    /** Holds the base copies and the log of a server whose past is kept. */
    readonly archiveFolder: string;
}

/** One of the two servers of an upgrade. */
export type Passing = 'old' | 'new';

/** Makes, fills and removes the folders of servers. */
export class Folders {
    readonly #folder: DataFolder;

    constructor(folder: DataFolder) {
        this.#folder = folder;
    }

    /** Where the folders of a server are, whether they exist or not. */
    of(id: number, data: string): ServerFolders {
        const path = `${this.#folder.path}/${root}/${id}`;
        return {
            dataFolder: `${path}/${data}`,
            runFolder: `${path}/run`,
            configFolder: `${path}/config`,
            tlsFolder: `${path}/tls`,
            archiveFolder: this.archive(id)
        };
    }

    /** A data folder, below the folder of the settings. */
    data(id: number, name: string): string {
        return `${root}/${id}/${name}`;
    }

    /** Where the past of a server is. */
    archive(id: number): string {
        return `${this.#folder.path}/${root}/${id}/archive`;
    }

    /** Where the sockets of an upgrade are, and the configuration of one of its servers. */
    passing(id: number, server: Passing): Pick<ServerFolders, 'runFolder' | 'configFolder'> {
        const path = `${this.#folder.path}/${root}/${id}/${passing}`;
        return { runFolder: path, configFolder: `${path}/${server}` };
    }

    /** Whether a socket below the folder of the settings can have so long a path. */
    get isShortEnough(): boolean {
        return Buffer.byteLength(this.of(99_999, firstData).runFolder + socketName) <= longestSocket;
    }

    /** Makes the folders of a new server. Only its account can read the data; sockets can be reached by every account, and ask for a password. */
    async create(id: number, account: MachineAccount | null): Promise<void> {
        await this.#folder.ensure(root, 0o711);
        const files = await this.#folder.ensure(`${root}/${id}`, 0o711);
        await create(files, `${root}/${id}/${firstData}`, 0o700, account);
        await create(files, `${root}/${id}/run`, 0o755, account);
        await create(files, `${root}/${id}/config`, 0o755, null);
    }

    /** Makes what an upgrade needs: an empty data folder, and the folder of both servers. */
    async createPassing(id: number, data: string, account: MachineAccount | null): Promise<void> {
        const files = this.#folder.files();
        const path = `${root}/${id}/${passing}`;
        await create(files, `${root}/${id}/${data}`, 0o700, account);
        await create(files, path, 0o711, account);
        await create(files, `${path}/old`, 0o755, null);
        await create(files, `${path}/new`, 0o755, null);
    }

    /** Removes what an upgrade needed, and every data folder but these. */
    async tidy(id: number, kept: readonly string[]): Promise<void> {
        const entries = await this.#folder.files().list(`${root}/${id}`);
        const stale = entries.filter(
            ({ name }) => name === passing || (name.startsWith(firstData) && !kept.includes(name))
        );
        for (const { name } of stale) {
            await this.#folder.remove(`${root}/${id}/${name}`);
        }
    }

    /** Makes the folders of a past that are missing; only the server's account can read them. */
    async openArchive(id: number, account: MachineAccount | null): Promise<void> {
        for (const name of ['archive', 'archive/log', 'archive/bases']) {
            await this.#ensureOwned(`${root}/${id}/${name}`, account);
        }
    }

    /** Removes a past. */
    async removeArchive(id: number): Promise<void> {
        await this.#folder.remove(`${root}/${id}/archive`);
    }

    /** Makes the empty folder of a base copy, and returns its path. */
    async createBase(id: number, copy: number, account: MachineAccount | null): Promise<string> {
        const path = `${root}/${id}/archive/bases/${copy}`;
        await this.#ensureOwned(path, account);
        return `${this.#folder.path}/${path}`;
    }

    /** Removes a base copy. */
    async removeBase(id: number, copy: number): Promise<void> {
        await this.#folder.remove(`${root}/${id}/archive/bases/${copy}`);
    }

    /** Writes files of a configuration, each whole or not at all. */
    async configure(configFolder: string, texts: Readonly<Record<string, string>>): Promise<void> {
        const files = this.#folder.files();
        const below = configFolder.slice(this.#folder.path.length + 1);
        for (const [name, text] of Object.entries(texts)) {
            const path = `${below}/${name}`;
            await using handle = await files.open(`${path}.new`, 'w', 0o644);
            await handle.writeFile(text);
            await handle.sync();
            await files.chmod(`${path}.new`, 0o644);
            await files.move(`${path}.new`, path, { replace: true });
        }
    }

    /** Writes the certificate of a server and its key, which only its account can read. */
    async certify(
        id: number,
        account: MachineAccount | null,
        { certificate, key }: Certificate
    ): Promise<void> {
        const path = `${root}/${id}/tls`;
        await this.#folder.remove(path);
        const files = await this.#folder.ensure(path);
        for (const [name, text] of [
            [certificateName, certificate],
            [keyName, key]
        ] as const) {
            await using handle = await files.open(`${path}/${name}`, 'wx', 0o600);
            await handle.writeFile(text);
            if (account !== null) {
                await files.chown(`${path}/${name}`, account.uid, account.gid);
            }
        }
        if (account !== null) {
            await files.chown(path, account.uid, account.gid);
        }
    }

    /** Removes the folders of a server with all data. */
    async remove(id: number): Promise<void> {
        await this.#folder.remove(`${root}/${id}`);
    }

    /** Keeps the data of a server that is gone, and returns where. */
    async keep(id: number, data: string, name: string): Promise<string> {
        const files = await this.#folder.ensure('kept', 0o711);
        const path = `kept/${id}-${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 40)}`;
        // An empty folder that a killed move left there gives way; one with data does not.
        await files.move(`${root}/${id}/${data}`, path, { replace: true });
        await this.remove(id);
        return `${this.#folder.path}/${path}`;
    }

    /** Makes a folder that only its owner can read, unless it is there. */
    async #ensureOwned(path: string, account: MachineAccount | null): Promise<void> {
        const files = await this.#folder.ensure(path);
        if (account !== null) {
            await files.chown(path, account.uid, account.gid);
        }
    }
}

async function create(
    files: Files,
    path: string,
    mode: number,
    account: MachineAccount | null
): Promise<void> {
    await files.createFolder(path, { mode });
    await files.chmod(path, mode);
    if (account !== null) {
        await files.chown(path, account.uid, account.gid);
    }
}
