/** Finds accounts of the machine by its own name service. */
import { homedir, userInfo } from 'node:os';

import type { Ctx } from '../../settings.ts';

/** The account that a task runs as. */
export interface Account {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    readonly home: string;
    /** Whether this is the account of the panel itself, which needs no right. */
    readonly own: boolean;
}

/** How long an account that was found is remembered. */
const cacheMs = 60_000;
const namePattern = /^[a-z_][a-z0-9_.-]{0,31}\$?$/i;

/** Finds accounts by name, and remembers them for a minute. */
export class Accounts {
    readonly #ctx: Ctx;
    readonly #cache = new Map<string, { readonly account: Account; readonly until: number }>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Finds the account of a name, or the panel's own account for null. Resolves with null when the machine has no such account. */
    async find(name: string | null): Promise<Account | null> {
        if (name === null) {
            return ownAccount();
        }
        const cached = this.#cache.get(name);
        if (cached !== undefined && cached.until > performance.now()) {
            return cached.account;
        }
        this.#cache.delete(name);
        const account = namePattern.test(name) ? await this.#query(name) : null;
        if (account !== null) {
            this.#cache.set(name, { account, until: performance.now() + cacheMs });
        }
        return account;
    }

    async #query(wanted: string): Promise<Account | null> {
        const { stdout } = await this.#ctx.exec('getent', ['--', 'passwd', wanted], { timeoutSeconds: 10 });
        const [name, , uid = '', gid = '', , home = ''] = stdout.split('\n', 1)[0]?.split(':') ?? [];
        if (name !== wanted || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) {
            return null;
        }
        return {
            name,
            uid: Number(uid),
            gid: Number(gid),
            home: home.startsWith('/') ? home : '/',
            own: process.getuid?.() === Number(uid)
        };
    }
}

/** Tells whether the panel may run programs as another account. */
export function canRunAsOthers(): boolean {
    return process.getuid?.() === 0;
}

function ownAccount(): Account {
    const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    try {
        const { username, homedir: home } = userInfo();
        return { name: username, uid, gid, home, own: true };
    } catch {
        // Containers often run as an id that has no account.
        return { name: String(uid), uid, gid, home: homedir(), own: true };
    }
}
