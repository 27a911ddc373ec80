/** Where checkouts, caches, artifacts and releases lie. */
import type { FileHandle } from 'node:fs/promises';

import { errors, type Files, isFailure } from '@portico/sdk';

import { type Account, findAccount, type Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';

/** Others may go through such a folder, and see nothing of it. */
const passage = 0o711;
const personal = 0o700;
const common = 0o755;

/** Makes and removes the folders of projects. Paths are relative to the folder of the plugin. */
export class Folders {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly files: Files;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
        this.files = ctx.files(machine.folder);
    }

    /** The absolute path of one. */
    absolute(path: string): string {
        return path === '' ? this.#machine.folder : `${this.#machine.folder}/${path}`;
    }

    /** The account that builds and releases run as. @throws TOOL_MISSING 50302 where there is none that may be used */
    async account(): Promise<Account> {
        const { user } = this.#ctx.settings;
        if (!this.#machine.isRoot()) {
            throw errors.toolMissing('a panel that runs as root', 'start the panel as root');
        }
        const account = await findAccount(user);
        if (account === null || account.uid === 0 || account.uid === process.getuid?.()) {
            throw errors.toolMissing(
                `the account ${user}`,
                `useradd --system --user-group --no-create-home --shell /usr/sbin/nologin ${user}`
            );
        }
        return account;
    }

    /** Makes the folder of the plugin with what every sandbox sees in `/etc`. Resolves with the folder of that. */
    async prepare(): Promise<string> {
        const account = await this.account();
        await this.files.createFolder('', { mode: passage, parents: true });
        await this.files.createFolder('etc', { mode: common, parents: true });
        await this.#write(
            'etc/passwd',
            `${account.name}:x:${account.uid}:${account.gid}::/tmp:/usr/sbin/nologin\n`
        );
        await this.#write('etc/group', `${account.name}:x:${account.gid}:\n`);
        return this.absolute('etc');
    }

    /** The folder of a project; it is made where it is missing. */
    async project(id: number): Promise<string> {
        const path = `projects/${id}`;
        await this.prepare();
        await this.files.createFolder('projects', { mode: passage, parents: true });
        await this.files.createFolder(path, { mode: passage, parents: true });
        for (const name of ['builds', 'releases', 'shared']) {
            await this.files.createFolder(`${path}/${name}`, { mode: passage, parents: true });
        }
        await this.files.createFolder(`${path}/artifacts`, { mode: personal, parents: true });
        for (const name of ['git', 'cache']) {
            await this.own(`${path}/${name}`);
        }
        return path;
    }

    /** A folder that belongs to the account; it is made where it is missing. */
    async own(path: string, mode = personal): Promise<string> {
        const { uid, gid } = await this.account();
        await this.files.createFolder(path, { mode, parents: true });
        await this.files.chown(path, uid, gid);
        return path;
    }

    /** Whether there is something at a path. */
    async has(path: string): Promise<boolean> {
        return this.files.stat(path).then(
            () => true,
            (error: unknown) => {
                if (isFailure(error) && error.code === 40400) {
                    return false;
                }
                throw error;
            }
        );
    }

    /** Removes what is at a path; nothing there is no error. */
    async remove(path: string): Promise<void> {
        await this.files.remove(path, { recursive: true }).catch((error: unknown) => {
            if (!isFailure(error) || error.code !== 40400) {
                throw error;
            }
        });
    }

    /** Opens a new file that only the panel reads. */
    async newFile(path: string): Promise<FileHandle> {
        await this.remove(path);
        return this.files.open(path, 'wx', 0o600);
    }

    /** Lets a link point to another folder beside it, at once. */
    async point(link: string, target: string): Promise<void> {
        const draft = `${link}.next`;
        await this.remove(draft);
        await this.files.link(draft, target, 'symbolic');
        await this.files.move(draft, link, { replace: true });
    }

    /** Bytes of all files in a folder; a file with several names counts for each. */
    async bytes(path: string): Promise<number> {
        let sum = 0;
        const entries = await this.files.list(path).catch(() => []);
        for (const { name, type, allocated } of entries) {
            sum += type === 'folder' ? await this.bytes(`${path}/${name}`) : allocated;
        }
        return sum;
    }

    async #write(path: string, text: string): Promise<void> {
        const file = await this.files.open(path, 'w', 0o644);
        try {
            await file.writeFile(text);
        } finally {
            await file.close();
        }
    }
}
