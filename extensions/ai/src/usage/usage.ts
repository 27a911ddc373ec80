/** Counts requests and tokens, and holds them to the limits. */
import type { EntityManager } from '@portico/sdk/db';

import { UsageEntity } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import type { Endpoint } from '../providers/model.ts';
import type { Ctx } from '../settings.ts';

/** Who a request is counted for. */
export interface Payer {
    readonly id: number | null;
    readonly username: string | null;
}

/** What calls of models used: tokens of input and output, and their price. */
export interface Spent {
    readonly input: number;
    readonly output: number;
    /** Null where the provider has no prices. */
    readonly cost: number | null;
}

/** One row of a report. */
export interface UsageGroup {
    readonly key: string;
    readonly input: number;
    readonly output: number;
    readonly requests: number;
    readonly cost: number;
}

/** What a report is about; times are milliseconds since 1970. */
export interface UsageQuery {
    readonly from: number;
    readonly to: number;
    readonly by: 'user' | 'provider' | 'day';
    /** Null: of all users. */
    readonly userId: number | null;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const columns = {
    user: 'username',
    provider: 'provider',
    day: "strftime('%Y-%m-%d', at / 1000, 'unixepoch')"
};

/** Tokens that a text is about, before the provider says. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4);

/** The one place where usage is written and limits are checked. */
export class UsageMeter {
    readonly #ctx: Ctx;
    readonly #machine: Machine;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /**
     * Counts a request before it is sent, with the tokens that it is about. The count stays when the request fails, as the provider's may.
     *
     * @throws LIMIT_REACHED 42950
     */
    async reserve(payer: Payer, endpoint: Endpoint, inputTokens: number): Promise<number> {
        const now = this.#machine.now();
        return this.#ctx.db.write(async (em) => {
            await this.#check(em, payer, { now, inputTokens });
            const row = em.create(UsageEntity, {
                at: now,
                userId: payer.id ?? 0,
                username: payer.username ?? '',
                providerId: endpoint.id,
                provider: endpoint.name,
                input: inputTokens,
                output: 0,
                cost: costOf(endpoint, inputTokens, 0) ?? 0
            });
            await em.flush();
            return row.id as number;
        });
    }

    /** Tells whether one more request would be let through, without counting one. @throws LIMIT_REACHED 42950 */
    async check(payer: Payer): Promise<void> {
        const now = this.#machine.now();
        await this.#ctx.db.read((em) => this.#check(em, payer, { now, inputTokens: 1 }));
    }

    /** Writes what a request used in truth. What the provider does not say stays as it was estimated. */
    async correct(
        id: number,
        endpoint: Endpoint,
        used: { readonly input: number; readonly output: number }
    ): Promise<Spent> {
        const cost = costOf(endpoint, used.input, used.output);
        await this.#ctx.db.write((em) =>
            em.execute('update usage set input = ?, output = ?, cost = ? where id = ?', [
                used.input,
                used.output,
                cost ?? 0,
                id
            ])
        );
        return { ...used, cost };
    }

    /** Sums, newest or first name first. */
    async report({ from, to, by, userId }: UsageQuery): Promise<UsageGroup[]> {
        const rows = await this.#ctx.db.read((em) =>
            em.execute<UsageGroup[]>(
                `select ${columns[by]} as key, sum(input) as input, sum(output) as output, count(*) as requests, sum(cost) as cost
                from usage where at >= ? and at < ? and (? is null or user_id = ?) group by 1 order by 1 ${by === 'day' ? 'desc' : 'asc'}`,
                [from, to, userId, userId]
            )
        );
        return rows.map((row) => ({ ...row, key: String(row.key) }));
    }

    async #check(
        em: EntityManager,
        payer: Payer,
        { now, inputTokens }: { readonly now: number; readonly inputTokens: number }
    ): Promise<void> {
        const { requestsPerMinute, tokensPerDay, tokensPerMonth, costPerMonth } = this.#ctx.settings;
        const user = payer.id ?? 0;
        const minute = await one(em, 'count(*)', 'user_id = ? and at > ?', [user, now - minuteMs]);
        if (minute >= requestsPerMinute) {
            const oldest = await one(em, 'min(at)', 'user_id = ? and at > ?', [user, now - minuteMs]);
            refuse('requestsPerMinute', oldest + minuteMs - now);
        }
        const day = Math.floor(now / dayMs) * dayMs;
        const today = await one(em, 'sum(input + output)', 'user_id = ? and at >= ?', [user, day]);
        if (today + inputTokens > tokensPerDay) {
            refuse('tokensPerDay', day + dayMs - now);
        }
        const { first, next } = monthOf(now);
        if (tokensPerMonth !== null) {
            const tokens = await one(em, 'sum(input + output)', 'at >= ?', [first]);
            if (tokens + inputTokens > tokensPerMonth) {
                refuse('tokensPerMonth', next - now);
            }
        }
        if (costPerMonth !== null && (await one(em, 'sum(cost)', 'at >= ?', [first])) >= costPerMonth) {
            refuse('costPerMonth', next - now);
        }
    }
}

function refuse(limit: string, waitMs: number): never {
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
    throw fail.LIMIT_REACHED({ limit, retryAfter: seconds, retryAfterSeconds: seconds });
}

async function one(em: EntityManager, what: string, where: string, values: number[]): Promise<number> {
    const [row] = await em.execute<{ n: number | null }[]>(
        `select ${what} as n from usage where ${where}`,
        values
    );
    return row?.n ?? 0;
}

function costOf({ prices }: Endpoint, input: number, output: number): number | null {
    return prices === null ? null : (input * prices.input + output * prices.output) / 1_000_000;
}

function monthOf(now: number): { readonly first: number; readonly next: number } {
    const date = new Date(now);
    const at = (month: number): number => Date.UTC(date.getUTCFullYear(), month, 1);
    return { first: at(date.getUTCMonth()), next: at(date.getUTCMonth() + 1) };
}
