/**
 * Finds and ends what a plugin's code starts without the plugin's context (`ctx`) and leaves behind. Servers, connections, child processes and
 * threads are always tracked; the asynchronous context tells their plugin. Timers and file watchers are tracked only while a plugin is imported,
 * set up, started or told of something, and always in development: tracking them means a hook for every timer of the process, which slows
 * each request by some percent (measured: 2 to 10).
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import type { Socket as Datagrams } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';

/** Something that a plugin left behind and that was ended. */
export interface Leftover {
    readonly kind: string;
    /** File and line where it was started. */
    readonly name: string;
}

interface Started extends Leftover {
    readonly isOver: () => boolean;
    readonly end: () => unknown;
}

interface Watched {
    readonly started: Set<Started>;
    /** What has ended is looked for and forgotten when there are so many. */
    limit: number;
    isOver: boolean;
}

type Emitter = { once(event: string, listener: () => void): unknown };

const context = new AsyncLocalStorage<Watched | null>();
const usualLimit = 1_000;
let watching = 0;
let looking = 0;

/** What the running code belongs to; null when it is not tracked. */
function current(): Watched | null {
    const watched = context.getStore() ?? null;
    return watched?.isOver === true ? null : watched;
}

function track(watched: Watched, started: Started): void {
    const all = watched.started.add(started);
    if (all.size > watched.limit) {
        [...all].filter(({ isOver }) => isOver()).forEach((each) => all.delete(each));
        watched.limit = usualLimit + 2 * all.size;
    }
}

/** Tracks something that starts in a plugin's context until it emits the event `over`. */
function begin<T extends Emitter>(
    kind: string,
    subject: T,
    over: string,
    end: (subject: T) => unknown
): void {
    const watched = current();
    if (watched === null) {
        return;
    }
    let isOver = false;
    const started: Started = {
        kind,
        name: placeOf(new Error().stack ?? ''),
        isOver: () => isOver,
        end: () => end(subject)
    };
    track(watched, started);
    subject.once(over, () => {
        isOver = true;
        watched.started.delete(started);
    });
}

const channels: readonly (readonly [string, (message: never) => void])[] = [
    [
        'net.client.socket',
        ({ socket }: { socket: Socket }) => begin('connection', socket, 'close', (each) => each.destroy())
    ],
    [
        'tracing:net.server.listen:asyncStart',
        ({ server }: { server: Server & { closeAllConnections?(): void } }) =>
            begin('server', server, 'close', (each) => {
                each.close();
                each.closeAllConnections?.();
            })
    ],
    [
        'udp.socket',
        ({ socket }: { socket: Datagrams }) => begin('socket', socket, 'close', (each) => each.close())
    ],
    [
        'child_process',
        ({ process: child }: { process: ChildProcess }) =>
            begin('child process', child, 'exit', (each) => each.kill('SIGKILL'))
    ],
    [
        'worker_threads',
        ({ worker }: { worker: Worker }) => begin('thread', worker, 'exit', (each) => each.terminate())
    ]
];

/** What is found by the hook for asynchronous resources, by Node's name of its type. */
const resources: Readonly<Record<string, Pick<Leftover, 'kind'> & Lasting>> = {
    Timeout: {
        kind: 'timer',
        isOver: ({ _destroyed }) => _destroyed !== false,
        end: (timer) => clearTimeout(timer as NodeJS.Timeout)
    },
    Immediate: {
        kind: 'timer',
        isOver: ({ _destroyed }) => _destroyed !== false,
        end: (timer) => clearImmediate(timer as NodeJS.Immediate)
    },
    FSEVENTWRAP: {
        kind: 'watcher of files',
        isOver: ({ initialized }) => initialized !== true,
        end: (watcher) => watcher.close?.()
    },
    STATWATCHER: {
        kind: 'watcher of files',
        isOver: (watcher) => watcher.hasRef?.() !== true,
        end: (watcher) => watcher.close?.()
    }
};

/** What Node's own objects have of these; its types do not know them. */
interface Resource {
    readonly _destroyed?: boolean;
    readonly initialized?: boolean;
    hasRef?(): boolean;
    close?(): void;
}

interface Lasting {
    readonly isOver: (resource: Resource) => boolean;
    readonly end: (resource: Resource) => void;
}

const hook = createHook({
    init(_id, type, _trigger, resource) {
        const lasting = Object.hasOwn(resources, type) ? resources[type] : undefined;
        const watched = lasting === undefined ? null : current();
        const place = watched === null ? null : callerOf(new Error().stack ?? '');
        if (lasting === undefined || watched === null || place === null) {
            return;
        }
        // A weak reference, so that what ended can be garbage-collected.
        const kept = new WeakRef<Resource>(resource);
        const ask = <T>(question: (resource: Resource) => T): T | undefined => {
            const found = kept.deref();
            return found === undefined ? undefined : question(found);
        };
        track(watched, {
            kind: lasting.kind,
            name: place,
            isOver: () => ask(lasting.isOver) ?? true,
            end: () => ask(lasting.end)
        });
    },
    ...{ trackPromises: false }
});

function onListener(event: string | symbol, listener: (...args: unknown[]) => void): void {
    const watched = current();
    if (watched !== null) {
        track(watched, {
            kind: `listener for ${String(event)} of the process`,
            name: placeOf(new Error().stack ?? ''),
            // The types know a listener for each event only.
            isOver: () => !process.listeners(event as 'exit').includes(listener as never),
            end: () => process.off(event as 'exit', listener)
        });
    }
}

/** Whether the running code was started neither by a plugin nor by a call from one. */
export function isOutside(): boolean {
    return context.getStore() === undefined;
}

/** Tracks what a piece of code starts: the import of a module, or all that a plugin does while it runs. */
export class LeakDetector {
    readonly #watched: Watched = { started: new Set(), limit: usualLimit, isOver: false };
    readonly #always: boolean;
    #isOver = false;

    /** @param always - whether timers and file watchers are tracked all the time */
    constructor(always: boolean) {
        this.#always = always;
        if (watching === 0) {
            // Each channel has its own type of message, which Node's types do not know.
            channels.forEach(([name, listener]) => subscribe(name, listener as never));
            process.on('newListener', onListener);
        }
        watching += 1;
        if (always) {
            look();
        }
    }

    /** Runs code of the plugin. */
    enter<T>(work: () => T): T {
        return context.run(this.#watched, work);
    }

    /** Runs code of the panel: what that starts is not tracked. */
    leave<T>(work: () => T): T {
        return context.run(null, work);
    }

    /** Tracks timers and file watchers, too, while the work runs. */
    async looking<T>(work: () => Promise<T>): Promise<T> {
        look();
        try {
            return await work();
        } finally {
            lookAway();
        }
    }

    /** Ends what is still open and returns its list. A second call returns an empty list. */
    async end(): Promise<readonly Leftover[]> {
        if (this.#isOver) {
            return [];
        }
        this.#isOver = true;
        // Things that were closed just now emit their event a turn of the event loop later.
        await turn();
        await turn();
        if (this.#always) {
            lookAway();
        }
        watching -= 1;
        if (watching === 0) {
            // As in the constructor.
            channels.forEach(([name, listener]) => unsubscribe(name, listener as never));
            process.off('newListener', onListener);
        }
        this.#watched.isOver = true;
        const left = [...this.#watched.started].filter(({ isOver }) => !isOver());
        this.#watched.started.clear();
        for (const { end } of left) {
            try {
                await end();
            } catch {
                // What was left ended by itself meanwhile.
            }
        }
        return left.map(({ kind, name }) => ({ kind, name }));
    }
}

function look(): void {
    looking += 1;
    if (looking === 1) {
        hook.enable();
    }
}

function lookAway(): void {
    looking -= 1;
    if (looking === 0) {
        hook.disable();
    }
}

/** File and line where a timer was made; null for a timer that Node itself made, which may be shared. */
function callerOf(stack: string): string | null {
    const frame = callersOf(stack).find(
        (each) => !/node:(?:internal\/(?:async_hooks|timers|fs\/watchers)|timers|fs)/.test(each)
    );
    return frame === undefined || frame.includes('node:') ? null : placeIn(frame);
}

function placeOf(stack: string): string {
    const frame = callersOf(stack).find((each) => !each.includes('node:'));
    return frame === undefined ? 'an unknown place' : placeIn(frame);
}

/** The frames above this module, the innermost first. Node calls it, so all frames before Node's first one are its own. None where a short stack ends before it. */
function callersOf(stack: string): readonly string[] {
    const frames = stack
        .split('\n')
        .slice(1)
        .map((line) => line.trim().replace(/^at (?:async )?/, ''));
    const first = frames.findIndex((frame) => frame.includes('node:'));
    return first === -1 ? [] : frames.slice(first);
}

/** File and line of a frame, with the last two parts of the path only. */
function placeIn(frame: string): string {
    const { file = frame, line = '' } = /(?<file>[^\s(]+?):(?<line>\d+):\d+\)?$/.exec(frame)?.groups ?? {};
    return `${file.split('/').slice(-2).join('/')}:${line}`;
}
