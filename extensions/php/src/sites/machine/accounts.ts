/** Accounts of sites. An account is used, changed or removed only if its comment proves that this package made it. */
import { setTimeout as wait } from 'node:timers/promises';

import { errors, Mutex } from '@portico/sdk';

import type { Machine } from '../../machine.ts';
import type { Ctx } from '../../settings.ts';
import { accountComment } from '../site.ts';

/** An account of the machine. */
export interface Account {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    readonly comment: string;
}

const attempts = 20;
const pauseMs = 100;
/** Exit codes of the shadow tools: see useradd(8) and userdel(8). */
const [cannotLock, unknownAccount, inUse, nameTaken] = [1, 6, 8, 9];

/** Makes and removes accounts, one at a time: they change the same files. */
export class Accounts {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #mutex = new Mutex();

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /** The account of that name; null when there is none. */
    async find(name: string): Promise<Account | null> {
        const line = (await this.#read('passwd')).find(([found]) => found === name);
        const [, , uid, gid, comment = ''] = line ?? [];
        return line === undefined ? null : { name, uid: Number(uid), gid: Number(gid), comment };
    }

    /** The number of a group; null when there is none of that name. */
    async groupId(name: string): Promise<number | null> {
        const line = (await this.#read('group')).find(([found]) => found === name);
        return line === undefined ? null : Number(line[2]);
    }

    /** The account of a site. @throws NOT_FOUND 40400 when it is gone, or is not the one that was made */
    async own(name: string, token: string): Promise<Account> {
        const account = await this.find(name);
        if (account === null || account.comment !== accountComment(token) || account.uid === 0) {
            throw errors.notFound(`The account ${name} of this site is gone, or another one has its name`);
        }
        return account;
    }

    /** Makes the account of a site. @throws CONFLICT 40900 when the name is taken */
    create(name: string, home: string, token: string): Promise<Account> {
        return this.#mutex.run(async () => {
            const code = await this.#run('useradd', [
                '--system',
                '--user-group',
                '--no-create-home',
                '--home-dir',
                home,
                '--shell',
                '/usr/sbin/nologin',
                '--comment',
                accountComment(token),
                '--',
                name
            ]);
            if (code === nameTaken) {
                throw errors.conflict('name');
            }
            return this.own(name, token);
        });
    }

    /** Ends all processes of the account of a site, and removes it. An account that is gone, or is another one, is left as it is. */
    remove(name: string, token: string): Promise<void> {
        return this.#mutex.run(async () => {
            const account = await this.find(name);
            if (account === null || account.comment !== accountComment(token)) {
                return;
            }
            for (let left = attempts; ; left -= 1) {
                await this.#machine.endProcesses(account.uid);
                const code = await this.#run('userdel', ['--', name]);
                if (code !== inUse || left === 0) {
                    return;
                }
                await wait(pauseMs);
            }
        });
    }

    /** Runs a tool until no other program holds the lock of the accounts. @throws Error with what the tool says when it fails */
    async #run(tool: string, args: readonly string[]): Promise<number> {
        for (let left = attempts; ; left -= 1) {
            const { code, stderr } = await this.#ctx.exec(tool, args, { cwd: '/', timeoutSeconds: 30 });
            if (code === 0 || code === nameTaken || code === inUse || code === unknownAccount) {
                return code;
            }
            if (left === 0 || !(code === cannotLock || code === 10)) {
                throw new Error(`${tool} ended with ${code ?? 'a signal'}: ${stderr.trim()}`);
            }
            await wait(pauseMs);
        }
    }

    async #read(file: 'passwd' | 'group'): Promise<readonly (readonly string[])[]> {
        const handle = await this.#ctx.files('/etc').open(file);
        try {
            const text = await handle.readFile('utf8');
            return text.split('\n').map((line) => line.split(':'));
        } finally {
            await handle.close();
        }
    }
}
