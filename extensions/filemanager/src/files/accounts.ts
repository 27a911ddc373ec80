/** Names of accounts and groups, as the system's own name service knows them. */
import type { Ctx } from '../settings.ts';

const keptMs = 5 * 60_000;
/** Ids that are kept; a hostile tree may have any number. */
const mostKept = 10_000;

type Kind = 'passwd' | 'group';

export class Accounts {
    readonly #ctx: Ctx;
    readonly #known = new Map<string, { readonly name: string; readonly until: number }>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** A name for each id; the number as text where there is none. */
    async names(kind: Kind, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
        const now = Date.now();
        const unknown = [...new Set(ids)].filter((id) => (this.#known.get(`${kind}${id}`)?.until ?? 0) < now);
        for (let at = 0; at < unknown.length; at += 100) {
            await this.#ask(kind, unknown.slice(at, at + 100), now + keptMs);
        }
        return new Map(ids.map((id) => [id, this.#known.get(`${kind}${id}`)?.name ?? String(id)]));
    }

    async #ask(kind: Kind, ids: readonly number[], until: number): Promise<void> {
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
        if (this.#known.size > mostKept) {
            this.#known.clear();
        }
        ids.forEach((id) => this.#known.set(`${kind}${id}`, { name: found.get(id) ?? String(id), until }));
    }
}
