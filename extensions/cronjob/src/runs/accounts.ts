/** Accounts of the machine, as its own name service knows them. */
import { homedir, userInfo } from 'node:os';

import type { Ctx } from '../settings.ts';

/** Whom a task runs as. */
export interface Account {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    readonly home: string;
    /** The panel's own, which no right is needed for. */
    readonly own: boolean;
}

const keptMs = 60_000;
const form = /^[a-z_][a-z0-9_.-]{0,31}\$?$/i;

export class Accounts {
    readonly #ctx: Ctx;
    readonly #known = new Map<string, { readonly account: Account; readonly until: number }>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The account of a name, the panel's own for null; null when the machine has no such account. */
    async find(name: string | null): Promise<Account | null> {
        if (name === null) {
            return own();
        }
        const known = this.#known.get(name);
        if (known !== undefined && known.until > performance.now()) {
            return known.account;
        }
        this.#known.delete(name);
        const account = form.test(name) ? await this.#ask(name) : null;
        if (account !== null) {
            this.#known.set(name, { account, until: performance.now() + keptMs });
        }
        return account;
    }

    async #ask(wanted: string): Promise<Account | null> {
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

/** Tells whether the panel may run programs as somebody else. */
export function runsAsOthers(): boolean {
    return process.getuid?.() === 0;
}

function own(): Account {
    const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    try {
        const { username, homedir: home } = userInfo();
        return { name: username, uid, gid, home, own: true };
    } catch {
        // An account without a name, as containers have them.
        return { name: String(uid), uid, gid, home: homedir(), own: true };
    }
}
