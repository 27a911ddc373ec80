/** Figures of containers: one subscription at the engine for each container, however many read it. */
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { readJsonLines } from './frames.ts';

/** The figures of a container at one moment. */
export interface Stats {
    readonly id: string;
    readonly name: string;
    readonly at: string;
    /** 100 is one processor. */
    readonly cpuPercent: number;
    readonly memoryBytes: number;
    readonly memoryLimitBytes: number;
    readonly netRxBytes: number;
    readonly netTxBytes: number;
    readonly blockReadBytes: number;
    readonly blockWriteBytes: number;
    readonly pids: number;
}

/** The engine's document, as far as it is read. */
export interface EngineStats {
    readonly read: string;
    readonly cpu_stats: CpuStats;
    readonly memory_stats?: {
        readonly usage?: number;
        readonly limit?: number;
        readonly stats?: Readonly<Record<string, number>> | null;
    };
    readonly networks?: Readonly<
        Record<string, { readonly rx_bytes: number; readonly tx_bytes: number }>
    > | null;
    readonly network?: { readonly rx_bytes: number; readonly tx_bytes: number } | null;
    readonly blkio_stats?: {
        readonly io_service_bytes_recursive?:
            readonly { readonly op: string; readonly value: number }[] | null;
    };
    readonly pids_stats?: { readonly current?: number };
}
interface CpuStats {
    readonly cpu_usage?: { readonly total_usage?: number };
}

type Reader = (stats: Stats) => void;
interface Subscription {
    readonly readers: Set<Reader>;
    readonly end: AbortController;
    last: Stats | null;
}

const everyMs = 5_000;

/** Shares the streams of figures. */
export class StatsFeed {
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #subscriptions = new Map<string, Subscription>();

    constructor(engine: Engine, inventory: Inventory) {
        this.#engine = engine;
        this.#inventory = inventory;
    }

    /** Number of subscriptions at the engine. */
    get open(): number {
        return this.#subscriptions.size;
    }

    /** The figures of one container until it ends or the reader leaves. @throws NOT_FOUND 40400 */
    async container(id: string, signal: AbortSignal): Promise<AsyncIterable<Stats>> {
        const { Id, Name, State: state } = await this.#inventory.container(id);
        const running = new Map(state.Running ? [[Id, Name.replace(/^\//, '')]] : []);
        return this.#read(async () => running, signal, true);
    }

    /** The figures of all containers that run, also of those that start later. */
    all(signal: AbortSignal): AsyncIterable<Stats> {
        return this.#read(async () => {
            const listed = await this.#inventory.list();
            return new Map(
                listed
                    .filter(({ State }) => State === 'running')
                    .map(({ Id, Names }) => [Id, (Names[0] ?? '').replace(/^\//, '')])
            );
        }, signal);
    }

    /** Ends every subscription. */
    close(): void {
        for (const { end } of this.#subscriptions.values()) {
            end.abort();
        }
        this.#subscriptions.clear();
    }

    async *#read(
        find: () => Promise<ReadonlyMap<string, string>>,
        signal: AbortSignal,
        once = false
    ): AsyncGenerator<Stats> {
        const waiting: Map<string, Stats> = new Map();
        let wake: () => void = () => undefined;
        const tell: Reader = (stats) => {
            // Only the newest figure of each container waits: a slow reader misses some, and costs no memory.
            waiting.set(stats.id, stats);
            wake();
        };
        const mine = new Map<string, () => void>();
        const leave = (): void => wake();
        signal.addEventListener('abort', leave, { once: true });
        try {
            let due = 0;
            while (!signal.aborted) {
                if (Date.now() >= due && (!once || due === 0)) {
                    const found = await find();
                    this.#follow(found, mine, tell);
                    due = Date.now() + everyMs;
                }
                if (
                    once &&
                    [...mine.keys()].every((id) => !this.#subscriptions.has(id)) &&
                    waiting.size === 0
                ) {
                    return;
                }
                const batch = [...waiting.values()];
                waiting.clear();
                yield* batch;
                if (waiting.size === 0 && !signal.aborted) {
                    await new Promise<void>((resolve) => {
                        const timer = setTimeout(resolve, 1_000);
                        wake = () => {
                            clearTimeout(timer);
                            resolve();
                        };
                    });
                }
            }
        } finally {
            signal.removeEventListener('abort', leave);
            mine.forEach((unsubscribe) => unsubscribe());
        }
    }

    #follow(found: ReadonlyMap<string, string>, mine: Map<string, () => void>, tell: Reader): void {
        for (const [id, name] of found) {
            if (!mine.has(id) || !this.#subscriptions.has(id)) {
                mine.set(id, this.#subscribe(id, name, tell));
            }
        }
        for (const [id, unsubscribe] of mine) {
            if (!found.has(id)) {
                unsubscribe();
                mine.delete(id);
            }
        }
    }

    #subscribe(id: string, name: string, tell: Reader): () => void {
        let subscription = this.#subscriptions.get(id);
        if (subscription === undefined) {
            subscription = { readers: new Set(), end: new AbortController(), last: null };
            this.#subscriptions.set(id, subscription);
            void this.#run(id, name, subscription);
        }
        const { readers, end, last } = subscription;
        readers.add(tell);
        if (last !== null) {
            tell(last);
        }
        return () => {
            readers.delete(tell);
            if (readers.size === 0) {
                end.abort();
                if (this.#subscriptions.get(id) === subscription) {
                    this.#subscriptions.delete(id);
                }
            }
        };
    }

    async #run(id: string, name: string, subscription: Subscription): Promise<void> {
        const { signal } = subscription.end;
        try {
            const response = await this.#engine.open('GET', `/containers/${id}/stats`, {
                query: { stream: true },
                signal,
                patienceMs: 15_000
            });
            let before: EngineStats | null = null;
            for await (const now of readJsonLines<EngineStats>(response)) {
                if (signal.aborted) {
                    break;
                }
                if (before !== null && Date.parse(now.read) > Date.parse(before.read)) {
                    const stats = statsOf({ id, name }, before, now);
                    subscription.last = stats;
                    subscription.readers.forEach((tell) => tell(stats));
                }
                before = now;
            }
            response.destroy();
        } catch {
            // The container ended, or the engine went away: the readers end or find it gone at their next look.
        } finally {
            if (this.#subscriptions.get(id) === subscription) {
                this.#subscriptions.delete(id);
            }
        }
    }
}

/** The figures between two samples. */
export function statsOf(
    { id, name }: { readonly id: string; readonly name: string },
    before: EngineStats,
    now: EngineStats
): Stats {
    const total = ({ cpu_stats: cpu }: EngineStats): number => cpu.cpu_usage?.total_usage ?? 0;
    const elapsed = (Date.parse(now.read) - Date.parse(before.read)) * 1_000_000;
    const networks = Object.values(now.networks ?? (now.network ? { network: now.network } : {}));
    const blocks = now.blkio_stats?.io_service_bytes_recursive ?? [];
    const blockBytes = (wanted: string): number =>
        blocks.filter(({ op }) => op.toLowerCase() === wanted).reduce((sum, { value }) => sum + value, 0);
    const memory = now.memory_stats ?? {};
    // Cached files that can go at any time are no use of memory; the kernel's two interfaces name them differently.
    const cache = memory.stats?.['total_inactive_file'] ?? memory.stats?.['inactive_file'] ?? 0;
    const usage = memory.usage ?? 0;
    return {
        id,
        name,
        at: new Date(Date.parse(now.read)).toISOString(),
        cpuPercent:
            elapsed > 0
                ? Math.max(0, Math.round(((total(now) - total(before)) / elapsed) * 10_000) / 100)
                : 0,
        memoryBytes: cache < usage ? usage - cache : usage,
        memoryLimitBytes: memory.limit ?? 0,
        netRxBytes: networks.reduce((sum, { rx_bytes: bytes }) => sum + bytes, 0),
        netTxBytes: networks.reduce((sum, { tx_bytes: bytes }) => sum + bytes, 0),
        blockReadBytes: blockBytes('read'),
        blockWriteBytes: blockBytes('write'),
        pids: now.pids_stats?.current ?? 0
    };
}
