/** Files of a site that are not its account's, or open to accounts that should not read them. */
import type { FileEntry } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { Account, Accounts } from '../sites/machine/accounts.ts';
import type { Folders } from '../sites/machine/folders.ts';
import type { Site } from '../sites/site.ts';

/** An entry that is not as it should be. */
export interface WrongEntry {
    /** Below the folder of the site. */
    readonly path: string;
    readonly problem: 'owner' | 'mode' | 'link';
    readonly evidence: string;
}

/** Who should own an entry, and its mode. */
interface Wanted {
    readonly uid: number;
    readonly gid: number;
    readonly mode: number;
}

/** An entry of a site. */
interface Found {
    /** Below the folder of the site. */
    readonly path: string;
    readonly entry: FileEntry;
    readonly wanted: Wanted;
}

/** Folders that the engine does not enter. */
const closed = /^(?:private|logs)(?:\/|$)/;
/** More entries are not looked at. */
const mostEntries = 1_000_000;
const together = 64;
/** Names of files that only the account may read, wherever they lie. */
const secret = /^(?:\.env(?:\..*)?|wp-config\.php|auth\.json|\.htpasswd|id_(?:rsa|ed25519)|.*\.(?:key|pem))$/;

/** Looks at the files of sites, and makes them right. */
export class FileOwners {
    readonly #ctx: Ctx;
    readonly #accounts: Accounts;
    readonly #folders: Folders;

    constructor(ctx: Ctx, accounts: Accounts, folders: Folders) {
        this.#ctx = ctx;
        this.#accounts = accounts;
        this.#folders = folders;
    }

    /** The entries that are wrong, at most `limit` of them, and how many there are. */
    async list(
        site: Site,
        limit: number,
        signal: AbortSignal
    ): Promise<{ readonly entries: WrongEntry[]; readonly total: number }> {
        const entries: WrongEntry[] = [];
        let total = 0;
        for await (const found of this.#walk(site, signal)) {
            const wrong = await Promise.all(found.map((each) => this.#judge(site, each)));
            const faults = wrong.filter((each) => each !== null);
            total += faults.length;
            entries.push(...faults.slice(0, limit - entries.length));
        }
        return { entries, total };
    }

    /** Makes owners and modes right. Links that lead out of the folder are told, and stay. */
    async repair(
        site: Site,
        signal: AbortSignal,
        log: (line: string) => void
    ): Promise<{ readonly changed: number; readonly left: number }> {
        let [changed, left] = [0, 0];
        for await (const found of this.#walk(site, signal)) {
            for (const outcome of await Promise.all(found.map((each) => this.#mend(site, each)))) {
                changed += outcome === 'changed' ? 1 : 0;
                if (typeof outcome === 'object' && outcome !== null) {
                    left += 1;
                    log(`${outcome.path} is left as it is: ${outcome.evidence}`);
                }
            }
        }
        return { changed, left };
    }

    /** Makes one entry right. Gives what is wrong with it when it is left as it is, and null when it was right. */
    async #mend(site: Site, found: Found): Promise<'changed' | WrongEntry | null> {
        const { path, entry, wanted } = found;
        const wrong = await this.#judge(site, found);
        if (wrong === null) {
            return null;
        }
        // A second name of another account's file is not this site's to give away.
        const isForeign = entry.type === 'file' && entry.links > 1 && entry.uid !== wanted.uid;
        if (wrong.problem === 'link' || isForeign || entry.type === 'other') {
            return wrong;
        }
        const files = this.#ctx.files(site.folder);
        await files.chown(path, wanted.uid, wanted.gid);
        if (entry.type !== 'link') {
            await files.chmod(path, wanted.mode);
        }
        return 'changed';
    }

    /** All entries below the folder of a site, some of one folder at a time: what is done to them together opens the folder once. */
    async *#walk(site: Site, signal: AbortSignal): AsyncGenerator<readonly Found[]> {
        const account = await this.#accounts.own(site.account, site.token);
        const group = await this.#folders.engineGroup(account);
        const files = this.#ctx.files(site.folder);
        const waiting = [''];
        let seen = 0;
        for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
            const entries = await files.list(folder).catch(() => []);
            for (let at = 0; at < entries.length; at += together) {
                signal.throwIfAborted();
                const found = entries.slice(at, at + together).map((entry) => {
                    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
                    return { path, entry, wanted: wantedOf(path, entry, account, group) };
                });
                seen += found.length;
                if (seen > mostEntries) {
                    return;
                }
                yield found;
                waiting.push(...found.filter(({ entry }) => entry.type === 'folder').map(({ path }) => path));
            }
        }
    }

    async #judge(site: Site, { path, entry, wanted }: Found): Promise<WrongEntry | null> {
        if (entry.type === 'link') {
            const target = await this.#ctx
                .files(site.folder)
                .readLink(path)
                .catch(() => '');
            if (leadsOut(site.folder, path, target)) {
                return { path, problem: 'link', evidence: `It leads to ${target}` };
            }
        }
        if (entry.uid !== wanted.uid || entry.gid !== wanted.gid) {
            return { path, problem: 'owner', evidence: `It belongs to ${entry.uid}:${entry.gid}` };
        }
        const fault = modeFault(path, entry);
        return fault === null
            ? null
            : { path, problem: 'mode', evidence: `${fault}: its mode is ${entry.mode.toString(8)}` };
    }
}

/** Owner and mode of an entry: what is served is the engine's group's to read, everything else the account's alone. */
function wantedOf(
    path: string,
    { name, type, mode }: FileEntry,
    { uid, gid }: Account,
    group: number
): Wanted {
    const owner = type === 'folder' ? 0o700 : 0o600 | (mode & 0o100);
    if (closed.test(path)) {
        return { uid, gid, mode: owner };
    }
    return type === 'file' && secret.test(name)
        ? { uid, gid: group, mode: owner }
        : { uid, gid: group, mode: type === 'folder' ? 0o2750 : owner | ((owner >> 3) & 0o050) };
}

/** What is wrong with the mode of an entry. Other accounts cannot enter the folder of the site, so what they may read in it does not matter. */
function modeFault(path: string, { name, type, mode }: FileEntry): string | null {
    if (type === 'link') {
        return null;
    }
    if ((mode & 0o002) !== 0) {
        return 'Every account may write to it';
    }
    if (type === 'file' && (mode & 0o7000) !== 0) {
        return 'It runs with the rights of its owner or group';
    }
    if (closed.test(path)) {
        return null;
    }
    if (type === 'file' && secret.test(name)) {
        return (mode & 0o077) === 0 ? null : 'It holds secrets, and the engine can read it';
    }
    const isReadable = type === 'folder' ? (mode & 0o2050) === 0o2050 : (mode & 0o040) !== 0;
    return isReadable ? null : 'The engine cannot read it, or what is made in it';
}

function leadsOut(folder: string, path: string, target: string): boolean {
    if (target.startsWith('/')) {
        return !`${target}/`.startsWith(`${folder}/`) || target.split('/').includes('..');
    }
    let depth = path.split('/').length - 1;
    return target.split('/').some((part) => {
        depth += part === '..' ? -1 : part === '' || part === '.' ? 0 : 1;
        return depth < 0;
    });
}
