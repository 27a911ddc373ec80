/** Hosts whose upstream takes no connection, as the panel's own check of a host tries it. */
import type { Machine } from '../machine.ts';
import type { Finding } from './finding.ts';
import { askPanel, type PanelQuestion } from './panel.ts';

/** What a try of a host found. */
interface Tried {
    readonly finding: Finding | null;
    /** By the clock that does not jump. */
    readonly at: number;
}
interface HostRecord {
    readonly id?: unknown;
    readonly domain?: unknown;
    readonly enabled?: unknown;
}
interface CheckItem {
    readonly id?: unknown;
    readonly ok?: unknown;
    readonly evidence?: unknown;
    readonly remedy?: unknown;
}

const mostHosts = 200;
const atOnce = 10;
/** A result is kept so long, so that a page that is looked at again and again asks nothing. */
const keptMs = 30_000;
const tryMs = 10_000;

/** Tries upstreams when it is asked, and keeps the results for a short time. */
export class UpstreamTries {
    readonly #machine: Machine;
    readonly #known = new Map<number, Tried>();
    readonly #pending = new Map<number, Promise<void>>();

    constructor(machine: Machine) {
        this.#machine = machine;
    }

    /**
     * Finds upstreams of hosts that take no connection.
     *
     * @param hosts - as the panel lists them to the caller; null when it does not
     * @returns null when not all of them were tried before the question ends; the tries go on, and the next question has their results
     */
    async find(question: PanelQuestion, hosts: unknown): Promise<Finding[] | null> {
        if (!Array.isArray(hosts)) {
            return null;
        }
        const wanted = (hosts as readonly HostRecord[])
            .filter(({ enabled, id }) => enabled !== false && typeof id === 'number')
            .slice(0, mostHosts);
        const now = this.#machine.monotonic();
        for (const [id, { at }] of this.#known) {
            if (now - at >= keptMs) {
                this.#known.delete(id);
            }
        }
        const waiting = wanted.filter(({ id }) => !this.#known.has(id as number));
        const work = Promise.all(Array.from({ length: atOnce }, () => this.#work(question, waiting)));
        await Promise.race([work, aborted(question.signal)]);
        const tried = wanted.map(({ id }) => this.#known.get(id as number));
        return tried.includes(undefined) ? null : tried.flatMap((each) => each?.finding ?? []);
    }

    async #work(question: PanelQuestion, waiting: HostRecord[]): Promise<void> {
        for (let host = waiting.shift(); host !== undefined; host = waiting.shift()) {
            const id = host.id as number;
            const pending = this.#pending.get(id) ?? this.#try(question, id, String(host.domain));
            this.#pending.set(id, pending);
            await pending.finally(() => this.#pending.delete(id));
        }
    }

    async #try(question: PanelQuestion, id: number, domain: string): Promise<void> {
        const signal = AbortSignal.any([question.ctx.signal, AbortSignal.timeout(tryMs)]);
        const items = await askPanel({ ...question, signal }, 'hosts.check', {}, { id });
        if (Array.isArray(items)) {
            const upstream = (items as readonly CheckItem[]).find((item) => item.id === 'upstream');
            this.#known.set(id, {
                at: this.#machine.monotonic(),
                finding: upstream?.ok === false ? describe(domain, upstream) : null
            });
        }
    }
}

function describe(subject: string, { evidence, remedy }: CheckItem): Finding {
    return {
        kind: 'upstream',
        severity: 'critical',
        subject,
        message: typeof evidence === 'string' ? evidence : 'It takes no connection',
        since: null,
        remedy: typeof remedy === 'string' ? remedy : null
    };
}

function aborted(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
        if (signal.aborted) {
            resolve();
        }
    });
}
