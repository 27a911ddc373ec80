/** The folders of a site: what belongs to whom, and with which mode. */
import { errors, isFailure } from '@portico/sdk';

import { panelScript } from '../../config/panel-script.ts';
import type { Ctx } from '../../settings.ts';
import { configFolder, linkName, type Site, socketFolder, socketName } from '../site.ts';
import type { Account, Accounts } from './accounts.ts';

/** A path below a site's folder as it should be. */
export interface Place {
    readonly path: string;
    readonly mode: number;
    /** Whether its group is the engine's, and not the account's own. */
    readonly isShared: boolean;
}

/** The folders of each site, parents first. With set-group-id, what is made in a shared folder is the engine's to read. */
export const places: readonly Place[] = [
    { path: '', mode: 0o2750, isShared: true },
    { path: 'public', mode: 0o2750, isShared: true },
    { path: 'private', mode: 0o700, isShared: false },
    { path: 'private/tmp', mode: 0o700, isShared: false },
    { path: 'private/sessions', mode: 0o700, isShared: false },
    { path: 'private/uploads', mode: 0o700, isShared: false },
    { path: 'logs', mode: 0o700, isShared: false }
];

/** What programs of a site make is the account's to write, and the group's to read: the engine serves uploads and static files. */
export const siteUmask = 0o027;

/** Makes and removes the folders of sites. */
export class Folders {
    readonly #ctx: Ctx;
    readonly #accounts: Accounts;

    constructor(ctx: Ctx, accounts: Accounts) {
        this.#ctx = ctx;
        this.#accounts = accounts;
    }

    /** The number of the engine's group; the account's own where the machine has no engine account. */
    async engineGroup({ gid }: Account): Promise<number> {
        const engine = await this.#ctx.hosts.account();
        return engine === null ? gid : ((await this.#accounts.groupId(engine.group)) ?? gid);
    }

    /** Whether a path is free. */
    async isFree(path: string): Promise<boolean> {
        const { parent, name } = split(path);
        const entries = await this.#ctx
            .files(parent)
            .list('')
            .catch((error: unknown) => {
                if (isFailure(error) && error.code === 40400) {
                    return [];
                }
                throw error;
            });
        return !entries.some((entry) => entry.name === name);
    }

    /** Makes the folder of a site with all that belongs into it. @throws CONFLICT 40900 when there is one */
    async createSite(site: Site, account: Account): Promise<void> {
        const { parent, name } = split(site.folder);
        await this.#ensure(parent, 0o755);
        const files = this.#ctx.files(parent);
        const group = await this.engineGroup(account);
        for (const { path, mode, isShared } of places) {
            const full = path === '' ? name : `${name}/${path}`;
            await files.createFolder(full, { mode: 0o700 });
            await files.chown(full, account.uid, isShared ? group : account.gid);
            await files.chmod(full, mode);
        }
    }

    /** Makes what a site needs to run: the folder of its sockets, and that of a slot's configuration. Both may be gone after a boot. */
    async createRun(site: Site, slot: number, account: Account): Promise<void> {
        const { runFolder, id } = site;
        await this.#ensure(runFolder, 0o711);
        await this.#ensure(`${runFolder}/conf`, 0o711);
        const group = await this.engineGroup(account);
        await this.#folder(`${runFolder}/${id}`, { mode: 0o2750, uid: account.uid, gid: group });
        await this.#folder(`${runFolder}/conf/${id}`, { mode: 0o750, uid: 0, gid: account.gid });
        await this.createConfig(configFolder(site, slot), account);
        await this.write(configFolder(site, slot), 'panel.php', panelScript, account);
    }

    /** Makes a folder for the files of a configuration, which the account may read and not change. */
    async createConfig(folder: string, { gid }: Account): Promise<void> {
        await this.#folder(folder, { mode: 0o750, uid: 0, gid });
        await this.#folder(`${folder}/ini`, { mode: 0o750, uid: 0, gid });
    }

    /** Writes a file of a configuration that the account may read, by one rename. */
    async write(folder: string, name: string, text: string, account: Account): Promise<void> {
        const files = this.#ctx.files(folder);
        const temporary = `${name}.new`;
        const handle = await files.open(temporary, 'w', 0o600);
        try {
            await handle.writeFile(text);
            await handle.chown(0, account.gid);
            await handle.chmod(0o640);
        } finally {
            await handle.close();
        }
        await files.move(temporary, name, { replace: true });
    }

    /** Makes the link that the engine connects to lead to the socket of the site's slot, by one rename. */
    async linkSocket(site: Site): Promise<void> {
        const files = this.#ctx.files(socketFolder(site));
        const wanted = socketName(site.slot);
        const entry = await files.stat(linkName).catch(() => null);
        if (entry?.type === 'link' && (await files.readLink(linkName)) === wanted) {
            return;
        }
        const temporary = `${linkName}.new`;
        await files.remove(temporary).catch(() => undefined);
        await files.link(temporary, wanted, 'symbolic');
        await files.move(temporary, linkName, { replace: true });
    }

    /** Removes what a site needs to run. */
    async removeRun({ runFolder, id }: Site): Promise<void> {
        await this.remove(`${runFolder}/${id}`);
        await this.remove(`${runFolder}/conf/${id}`);
    }

    /** Removes a folder with all that is in it. One that is gone is no error. */
    async remove(path: string): Promise<void> {
        const { parent, name } = split(path);
        await this.#ctx
            .files(parent)
            .remove(name, { recursive: true })
            .catch((error: unknown) => {
                if (!isFailure(error) || error.code !== 40400) {
                    throw error;
                }
            });
    }

    /** Gives what is left of a site to root, so that no later account with the same number owns it. */
    async release(path: string): Promise<void> {
        const { parent, name } = split(path);
        const files = this.#ctx.files(parent);
        const give = async (at: string): Promise<void> => {
            const { type } = await files.stat(at);
            await files.chown(at, 0, 0);
            if (type === 'folder') {
                for (const entry of await files.list(at)) {
                    await give(`${at}/${entry.name}`);
                }
            }
        };
        await give(name);
    }

    async #folder(
        path: string,
        { mode, uid, gid }: { readonly mode: number; readonly uid: number; readonly gid: number }
    ): Promise<void> {
        const { parent, name } = split(path);
        const files = this.#ctx.files(parent);
        await files.createFolder(name, { mode: 0o700 }).catch(ignoreTaken);
        await files.chown(name, uid, gid);
        await files.chmod(name, mode);
    }

    /** Makes a folder and those above it where they are missing; the mode holds whatever the panel's umask is. */
    async #ensure(path: string, mode: number): Promise<void> {
        const files = this.#ctx.files('/');
        let at = '';
        for (const part of path.slice(1).split('/')) {
            at = at === '' ? part : `${at}/${part}`;
            const isNew = await files.createFolder(at, { mode: 0o700 }).then(
                () => true,
                (error: unknown) => {
                    ignoreTaken(error);
                    return false;
                }
            );
            if (isNew) {
                await files.chmod(at, mode);
            }
        }
    }
}

/** The folder that holds a path, and the name in it. */
export function split(path: string): { readonly parent: string; readonly name: string } {
    const at = path.lastIndexOf('/');
    return { parent: at === 0 ? '/' : path.slice(0, at), name: path.slice(at + 1) };
}

function ignoreTaken(error: unknown): void {
    if (!isFailure(error) || error.code !== errors.conflict('').code) {
        throw error;
    }
}
