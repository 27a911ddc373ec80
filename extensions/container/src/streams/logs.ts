/** Logs of containers and stacks, as events that can be resumed. */
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { labelOf } from '../spec/spec.ts';
import { type OutputLine, readFrames, readLines } from './frames.ts';

/** What of a log is wanted. */
export interface LogQuery {
    readonly follow: boolean;
    readonly tail: number;
    readonly since?: string | undefined;
    readonly until?: string | undefined;
    readonly stream?: 'stdout' | 'stderr' | undefined;
    /** Id of the last event that the reader has. */
    readonly after: string | null;
    readonly signal: AbortSignal;
}

/** A line of a log. */
export interface LogLine extends OutputLine {
    readonly id: string;
    readonly at: string;
    readonly service?: string;
}

/** Reads logs from the engine. */
export class Logs {
    readonly #engine: Engine;
    readonly #inventory: Inventory;

    constructor(engine: Engine, inventory: Inventory) {
        this.#engine = engine;
        this.#inventory = inventory;
    }

    /** The lines of a container. @throws NOT_FOUND 40400 */
    async container(id: string, query: LogQuery): Promise<AsyncIterable<LogLine>> {
        const container = await this.#inventory.container(id);
        return this.#read(container.Id, container.Config.Tty === true, query);
    }

    /** The lines of all containers of a stack, each as it comes; none where it has no container. */
    async stack(name: string, service: string | undefined, query: LogQuery): Promise<AsyncIterable<LogLine>> {
        const listed = (await this.#inventory.list(name)).filter(
            ({ Labels: labels }) => service === undefined || labels?.[labelOf.service] === service
        );
        const sources = await Promise.all(
            listed.map(async ({ Id: id, Labels: labels }) => {
                const { Config: config } = await this.#inventory.container(id);
                const of = labels?.[labelOf.service] ?? '';
                return this.#named(this.#read(id, config.Tty === true, query), of);
            })
        );
        return merge(sources);
    }

    async *#named(lines: AsyncIterable<LogLine>, service: string): AsyncGenerator<LogLine> {
        for await (const line of lines) {
            yield { ...line, service };
        }
    }

    async *#read(id: string, raw: boolean, query: LogQuery): AsyncGenerator<LogLine> {
        const after = query.after === null ? null : placeOf(query.after);
        const response = await this.#engine.open('GET', `/containers/${id}/logs`, {
            query: {
                follow: query.follow,
                stdout: query.stream !== 'stderr',
                stderr: query.stream !== 'stdout',
                timestamps: true,
                tail: after === null ? query.tail : 'all',
                since: after === null ? secondsOf(query.since) : engineTime(after.time),
                until: secondsOf(query.until)
            },
            signal: query.signal,
            patienceMs: 30_000
        });
        try {
            let cut: Place = { time: '', stdout: 0, stderr: 0 };
            for await (const { stream, text } of readLines(readFrames(response, raw))) {
                const [, time, rest = ''] = /^(\d{4}-\d\d-\d\dT\S+) ?(.*)$/s.exec(text) ?? [];
                // A piece of a line that was cut has no time of its own.
                cut = time === undefined ? cut : nextPlace(cut, time, stream);
                if (after === null || isAfter(cut, after, stream)) {
                    const at = new Date(Date.parse(cut.time)).toISOString();
                    yield { id: idOf(cut), at, stream, text: time === undefined ? text : rest };
                }
            }
        } catch (error) {
            if (!query.signal.aborted) {
                throw error;
            }
        } finally {
            response.destroy();
        }
    }
}

/** Where a line stands: its time as the engine tells it, and how many lines of each stream had that time so far. */
interface Place {
    readonly time: string;
    readonly stdout: number;
    readonly stderr: number;
}

function nextPlace(before: Place, time: string, stream: OutputLine['stream']): Place {
    const same = before.time === time ? before : { stdout: 0, stderr: 0 };
    return { ...same, time, [stream]: same[stream] + 1 };
}

/** Docker tells nanoseconds, which are enough. Podman tells seconds, so lines of one second are counted. */
const idOf = ({ time, stdout, stderr }: Place): string =>
    time.includes('.') ? time : `${time}~${stdout}.${stderr}`;

function placeOf(id: string): Place {
    const [, time = id, stdout, stderr] = /^(.*)~(\d+)\.(\d+)$/.exec(id) ?? [];
    return { time, stdout: Number(stdout ?? Infinity), stderr: Number(stderr ?? Infinity) };
}

function isAfter(place: Place, after: Place, stream: OutputLine['stream']): boolean {
    const order = compareTimes(place.time, after.time);
    return order > 0 || (order === 0 && place[stream] > after[stream]);
}

/** Seconds since 1970 of an ISO time, as the engine takes it. */
function secondsOf(time: string | undefined): string | undefined {
    return time === undefined ? undefined : String(Date.parse(time) / 1_000);
}

/** Seconds and nanoseconds of a time of the engine. */
function engineTime(id: string): string {
    const [, fraction = '0'] = /\.(\d+)/.exec(id) ?? [];
    const seconds = Math.floor(Date.parse(id) / 1_000);
    return Number.isNaN(seconds) ? '0' : `${seconds}.${fraction.padEnd(9, '0')}`;
}

function compareTimes(one: string, other: string): number {
    const [first, second] = [engineTime(one), engineTime(other)].map((text) => text.padStart(24, '0')) as [
        string,
        string
    ];
    return first < second ? -1 : first > second ? 1 : 0;
}

/** All sources as one; a slow reader holds every one of them. */
async function* merge<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
    const pending = new Map(
        sources.map((source) => [source, source.next().then((result) => ({ source, result }))] as const)
    );
    try {
        while (pending.size > 0) {
            const { source, result } = await Promise.race(pending.values());
            if (result.done === true) {
                pending.delete(source);
                continue;
            }
            yield result.value;
            pending.set(
                source,
                source.next().then((next) => ({ source, result: next }))
            );
        }
    } finally {
        for (const [source, next] of pending) {
            next.catch(() => undefined);
            source.return(undefined).catch(() => undefined);
        }
    }
}
