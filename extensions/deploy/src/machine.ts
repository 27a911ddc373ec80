/** What the plugin reads from the machine by itself: accounts, processes, and which of them listens where. */
import { readdir, readFile, readlink } from 'node:fs/promises';

/** An account of the machine. */
export interface Account {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
}

/** The machine as this plugin sees it. Tests give it another folder. */
export interface Machine {
    /** Where releases lie; the manifest names it, too. */
    readonly folder: string;
    /** Whether the panel runs as root. */
    readonly isRoot: () => boolean;
}

/** The machine that the panel runs on. */
export const realMachine: Machine = {
    folder: '/var/lib/portico-deploy',
    isRoot: () => process.getuid?.() === 0
};

/** The state of a socket that listens, in `/proc/net/tcp`. */
const listening = '0A';
/** The state of a connection that is open. */
const established = '01';
/** 127.0.0.1 in `/proc/net/tcp`. */
const loopback = '0100007F';

/** The account of a name, null where the machine has none in its own file. */
export async function findAccount(name: string): Promise<Account | null> {
    const text = await readFile('/etc/passwd', 'utf8').catch(() => '');
    const line = text
        .split('\n')
        .map((each) => each.split(':'))
        .find(([found]) => found === name);
    return line === undefined ? null : { name, uid: Number(line[2]), gid: Number(line[3]) };
}

/** Sockets that listen, by port: the inode of each. */
export async function listeners(): Promise<ReadonlyMap<number, readonly string[]>> {
    const found = new Map<number, string[]>();
    for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
        const text = await readFile(file, 'utf8').catch(() => '');
        for (const line of text.split('\n').slice(1)) {
            const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
            if (state === listening) {
                const port = Number.parseInt(local.split(':')[1] ?? '', 16);
                found.set(port, [...(found.get(port) ?? []), inode]);
            }
        }
    }
    return found;
}

/**
 * How many connections to a port of this machine are open. Both ends of one lie on this machine where the engine made it; where the ports of
 * containers are only translated, the end of the engine alone is seen.
 */
export async function openConnections(port: number): Promise<number> {
    const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const texts = await Promise.all(
        ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8').catch(() => ''))
    );
    return texts
        .flatMap((text) => text.split('\n').slice(1))
        .map((line) => line.trim().split(/\s+/))
        .filter(
            ([, local = '', remote = '', state]) =>
                state === established && (local.endsWith(wanted) || remote === `${loopback}${wanted}`)
        ).length;
}

/** A process and all of its descendants. */
export async function descendants(pid: number): Promise<readonly number[]> {
    const children = new Map<number, number[]>();
    for (const name of await readdir('/proc')) {
        if (/^\d+$/.test(name)) {
            const parent = await parentOf(Number(name));
            children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
        }
    }
    const all = [pid];
    for (let at = 0; at < all.length; at += 1) {
        all.push(...(children.get(all[at] as number) ?? []));
    }
    return all;
}

async function parentOf(pid: number): Promise<number> {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    // The name of a program may hold brackets and blanks, so the fields are counted behind the last one.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? -1);
}

/** Whether a process and its descendants have all of these sockets open. */
export async function holdsSockets(pid: number, inodes: readonly string[]): Promise<boolean> {
    const wanted = new Set(inodes.map((inode) => `socket:[${inode}]`));
    for (const each of await descendants(pid)) {
        const folder = `/proc/${each}/fd`;
        for (const name of await readdir(folder).catch(() => [])) {
            wanted.delete(await readlink(`${folder}/${name}`).catch(() => ''));
        }
    }
    return wanted.size === 0;
}

/** Asks the program inside a sandbox to end: the first process after the one that bubblewrap puts at the head of the sandbox. */
export async function askToEnd(pid: number): Promise<void> {
    for (const each of await descendants(pid)) {
        const status = await readFile(`/proc/${each}/status`, 'utf8').catch(() => '');
        if (/^NSpid:.*\s2$/m.test(status)) {
            try {
                process.kill(each, 'SIGTERM');
            } catch {
                // It ended by itself meanwhile.
            }
        }
    }
}

/** Memory of a process and its descendants. */
export async function memoryOf(pid: number): Promise<number> {
    const sizes = await Promise.all(
        (await descendants(pid)).map(async (each) => {
            const status = await readFile(`/proc/${each}/status`, 'utf8').catch(() => '');
            return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
        })
    );
    return sizes.reduce((sum, size) => sum + size, 0);
}
