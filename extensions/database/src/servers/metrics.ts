/** How busy servers were: one measurement a minute, kept for a week. */
import { MetricEntity } from '../entities.ts';
import type { Measured } from '../kinds/kind.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Ctx } from '../settings.ts';

const keptMs = 7 * 86_400_000;
const minuteMs = 60_000;
/** Points that an answer has at most. */
const mostPoints = 500;

/** One point: the mean of the measurements in its time. */
export interface MetricPoint {
    readonly at: number;
    readonly connections: number;
    readonly perSecond: number | null;
    readonly cacheHits: number | null;
}

/** Measures servers, and tells what was measured. */
export class Metrics {
    readonly #ctx: Ctx;
    readonly #target: FindTarget;
    readonly #last = new Map<number, Measured & { readonly at: number }>();

    constructor(ctx: Ctx, target: FindTarget) {
        this.#ctx = ctx;
        this.#target = target;
    }

    /** Measures servers. One that does not answer has no measurement. */
    async sample(ids: readonly number[]): Promise<void> {
        await Promise.all(
            ids.map(async (id) => {
                // Why it does not answer is shown as the state of the server.
                await this.#sample(id).catch(() => void this.#last.delete(id));
            })
        );
        const oldest = Date.now() - keptMs;
        await this.#ctx.db.write(
            async (em) => void (await em.nativeDelete(MetricEntity, { at: { $lt: oldest } }))
        );
    }

    /** Points between two times, oldest first. @param range - milliseconds since 1970 */
    async list(
        serverId: number,
        { from, to }: { readonly from: number; readonly to: number }
    ): Promise<readonly MetricPoint[]> {
        const width = Math.max(minuteMs, Math.ceil((to - from) / mostPoints));
        return this.#ctx.db.read((em) =>
            em.execute<MetricPoint[]>(
                `select (at / ?) * ? as at, avg(connections) as connections, avg(per_second) as perSecond, avg(cache_hits) as cacheHits
                 from metrics where server_id = ? and at >= ? and at <= ? group by at / ? order by 1`,
                [width, width, serverId, from, to, width]
            )
        );
    }

    async #sample(serverId: number): Promise<void> {
        const { kind, admin } = await this.#target(serverId);
        const now = { ...(await admin.use(null, (session) => kind.load.measure(session))), at: Date.now() };
        const before = this.#last.get(serverId);
        this.#last.set(serverId, now);
        // A counter that went back belongs to a server that was started since.
        const isLater =
            before !== undefined &&
            now.at > before.at &&
            now.worked >= before.worked &&
            now.read >= before.read;
        const row = {
            serverId,
            at: now.at,
            connections: now.connections,
            perSecond: isLater ? ((now.worked - before.worked) * 1_000) / (now.at - before.at) : null,
            cacheHits:
                isLater && now.read > before.read
                    ? (now.cached - before.cached) / (now.read - before.read)
                    : null
        };
        await this.#ctx.db.write(async (em) => void (await em.insert(MetricEntity, row)));
    }
}
