/** Hooks of stacks: one address and one token each, by which a build elsewhere has the stack pulled and deployed again. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

import { isFailure } from '@portico/sdk';

import type { StackRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { StackChanges } from './changes.ts';
import type { StackStore } from './revisions.ts';
import type { StackRunner } from './work.ts';

/** What is shown of a hook, once. */
export interface NewHook {
    /** Path of the panel. */
    readonly url: string;
    readonly token: string;
}

/** What a call of a hook comes to. */
export interface HookAnswer {
    readonly stack: string;
    /** Another change is under way: this one begins when that has ended, once for all calls until then. */
    readonly waits: boolean;
}

/** Makes hooks, and carries them out. */
export class StackHooks {
    readonly #ctx: Ctx;
    readonly #store: StackStore;
    readonly #changes: StackChanges;
    readonly #runner: StackRunner;
    readonly #waiting = new Set<string>();

    constructor(
        ctx: Ctx,
        parts: {
            readonly store: StackStore;
            readonly changes: StackChanges;
            readonly runner: StackRunner;
        }
    ) {
        this.#ctx = ctx;
        this.#store = parts.store;
        this.#changes = parts.changes;
        this.#runner = parts.runner;
    }

    /** Makes the hook of a stack, in place of one that is there. @throws NOT_FOUND 40400, STACK_OWNED 40950 */
    async create(name: string): Promise<NewHook> {
        await this.#changes.mine(name, null);
        const key = randomBytes(16).toString('hex');
        const token = randomBytes(32).toString('base64url');
        await this.#store.setHook(name, { key, token: hashOf(token).toString('hex') });
        return { url: `/api/plugins/${this.#ctx.name}/hooks/${key}`, token };
    }

    /** @throws NOT_FOUND 40400 where there is none */
    async remove(name: string): Promise<void> {
        await this.#changes.mine(name, null);
        await this.#store.setHook(name, null);
    }

    /** Has a stack pulled and deployed again. @throws HOOK_REFUSED 40150 for an unknown key and a wrong token, alike */
    async call(key: string, token: string): Promise<HookAnswer> {
        const row = await this.#store.findByHook(key);
        const expected = Buffer.from(row?.hookToken ?? '00'.repeat(32), 'hex');
        if (!timingSafeEqual(expected, hashOf(token)) || row === null) {
            throw fail.HOOK_REFUSED();
        }
        const { name } = row;
        if (this.#waiting.has(name)) {
            return { stack: name, waits: true };
        }
        try {
            await this.#begin(row);
            return { stack: name, waits: false };
        } catch (error) {
            if (!isFailure(error) || error.code !== 40901) {
                throw error;
            }
        }
        this.#waiting.add(name);
        void this.#beginLater(name);
        return { stack: name, waits: true };
    }

    async #beginLater(name: string): Promise<void> {
        try {
            while (!this.#ctx.signal.aborted) {
                await this.#runner.idle(name);
                const isBegun = await this.#begin(await this.#store.get(name)).then(
                    () => true,
                    (error: unknown) => {
                        if (isFailure(error) && error.code === 40901) {
                            return false;
                        }
                        throw error;
                    }
                );
                if (isBegun) {
                    return;
                }
                await new Promise((resolve) => setTimeout(resolve, 200));
            }
        } catch (error) {
            this.#ctx.log.warn('A hook that waited was not carried out', { stack: name, error });
        } finally {
            this.#waiting.delete(name);
        }
    }

    async #begin(row: StackRow): Promise<void> {
        const work = await this.#changes.redeploy(row, { because: 'hook', pull: true, by: 'hook' });
        await this.#runner.begin(work, null);
    }
}

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();
