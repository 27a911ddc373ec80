/** Finds names and ids of accounts and groups by the name service of the machine. */
import { errors } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';

const cacheMs = 5 * 60_000;
/** Ids that are remembered at most; a hostile tree may have any number. */
const maxCached = 10_000;

type Kind = 'passwd' | 'group';

/** Finds names by ids, which it remembers for five minutes, and ids by names. */
export class Accounts {
    readonly #ctx: Ctx;
    readonly #cache = new Map<string, { readonly name: string; readonly until: number }>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The name of each id; the number as text where it has none. */
    async names(kind: Kind, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
        const now = Date.now();
        const unknown = [...new Set(ids)].filter((id) => (this.#cache.get(`${kind}${id}`)?.until ?? 0) < now);
        for (let at = 0; at < unknown.length; at += 100) {
            await this.#query(kind, unknown.slice(at, at + 100), now + cacheMs);
        }
        return new Map(ids.map((id) => [id, this.#cache.get(`${kind}${id}`)?.name ?? String(id)]));
    }

    /** The id of a name, or a number as it is. @throws VALIDATION_FAILED 40001 for a name that the machine does not have */
    async id(kind: Kind, name: string | number): Promise<number> {
        if (typeof name === 'number' || /^\d+$/.test(name)) {
            return Number(name);
        }
        const { code, stdout } = await this.#ctx.exec('getent', [kind, name], { timeoutSeconds: 5 });
        const [found, , id = ''] = (stdout.split('\n')[0] ?? '').split(':');
        if (code !== 0 || found !== name || !/^\d+$/.test(id)) {
            const field = kind === 'passwd' ? 'owner' : 'group';
            throw errors.invalid([{ path: field, message: `This machine has no ${field} ${name}` }]);
        }
        return Number(id);
    }

    async #query(kind: Kind, ids: readonly number[], until: number): Promise<void> {
        const found = new Map<number, string>();
        try {
            const { stdout } = await this.#ctx.exec('getent', [kind, ...ids.map(String)], {
                timeoutSeconds: 5
            });
            for (const line of stdout.split('\n')) {
                const [name = '', , id = ''] = line.split(':');
                if (name !== '' && /^\d+$/.test(id)) {
                    found.set(Number(id), name);
                }
            }
        } catch (error) {
            this.#ctx.log.debug('Names of owners could not be looked up', { error: String(error) });
        }
        if (this.#cache.size > maxCached) {
            this.#cache.clear();
        }
        ids.forEach((id) => this.#cache.set(`${kind}${id}`, { name: found.get(id) ?? String(id), until }));
    }
}
