/**
 * What a plugin's code in this process starts past its context and leaves behind: servers, connections, children and threads at any time, and
 * timers and watchers of files where they are looked for. Whose it is, is known by the asynchronous context. To look for timers means to hear
 * of every timer of the process, which costs each request some percent (measured: 2 to 10), so that is done while a plugin is set up, started
 * or told of something, and all the time in development only.
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import type { Socket as Datagrams } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FSWatcher } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';

/** What was left behind, and was ended. */
export interface Leftover {
    readonly kind: string;
    /** Where it was started. */
    readonly name: string;
}

interface Started extends Leftover {
    readonly isOver: () => boolean;
    readonly end: () => unknown;
}

interface Watched {
    readonly started: Set<Started>;
}

type Emitter = { once(event: string, listener: () => void): unknown };

const context = new AsyncLocalStorage<Watched | null>();
let watching = 0;
let looking = 0;

/** What starts in a plugin's context, and tells when it is over. */
function begin<T extends object>(kind: string, subject: T, over: string, end: (subject: T) => unknown): void {
    const watched = context.getStore();
    if (watched === undefined || watched === null) {
        return;
    }
    let isOver = false;
    const started: Started = {
        kind,
        name: placeOf(new Error().stack ?? ''),
        isOver: () => isOver,
        end: () => end(subject)
    };
    watched.started.add(started);
    (subject as unknown as Emitter).once(over, () => {
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

const hook = createHook({
    init(_id, type, _trigger, resource) {
        const watched = type === 'Timeout' || type === 'FSEVENTWRAP' ? context.getStore() : null;
        const place = watched === undefined || watched === null ? '' : callerOf(new Error().stack ?? '');
        if (watched === undefined || watched === null || place === null) {
            return;
        }
        // What is over is collected: nothing here keeps it.
        const kept = new WeakRef(resource);
        watched.started.add(
            type === 'Timeout'
                ? {
                      kind: 'timer',
                      name: place,
                      isOver: () =>
                          (kept.deref() as { _destroyed?: boolean } | undefined)?._destroyed !== false,
                      end: () => clearTimeout(kept.deref() as NodeJS.Timeout)
                  }
                : {
                      kind: 'watcher of files',
                      name: place,
                      isOver: () =>
                          (kept.deref() as { initialized?: boolean } | undefined)?.initialized !== true,
                      end: () => (kept.deref() as FSWatcher | undefined)?.close()
                  }
        );
    },
    ...{ trackPromises: false }
});

function onListener(event: string | symbol, listener: (...args: unknown[]) => void): void {
    const watched = context.getStore();
    if (watched !== undefined && watched !== null) {
        watched.started.add({
            kind: `listener for ${String(event)} of the process`,
            name: placeOf(new Error().stack ?? ''),
            isOver: () => !process.listeners(event as 'exit').includes(listener as never),
            end: () => process.off(event as 'exit', listener)
        });
    }
}

/** Whether nothing that runs here was led to by a plugin. */
export function isOutside(): boolean {
    return context.getStore() === undefined;
}

/** One generation's code. */
export class LeakDetector {
    readonly #watched: Watched = { started: new Set() };
    readonly #always: boolean;
    #isOver = false;

    /** @param always - timers too, at any time */
    constructor(always: boolean) {
        this.#always = always;
        if (watching === 0) {
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

    /** Runs code of the host: what that starts is the host's. */
    leave<T>(work: () => T): T {
        return context.run(null, work);
    }

    /** Looks for timers and watchers meanwhile. */
    async looking<T>(work: () => Promise<T>): Promise<T> {
        look();
        try {
            return await work();
        } finally {
            lookAway();
        }
    }

    /** Ends what still goes on, and names it. The second call gives nothing. */
    async end(): Promise<readonly Leftover[]> {
        if (this.#isOver) {
            return [];
        }
        this.#isOver = true;
        // What has just been closed says so a turn later.
        await turn();
        await turn();
        if (this.#always) {
            lookAway();
        }
        watching -= 1;
        if (watching === 0) {
            channels.forEach(([name, listener]) => unsubscribe(name, listener as never));
            process.off('newListener', onListener);
        }
        const left = [...this.#watched.started].filter(({ isOver }) => !isOver());
        this.#watched.started.clear();
        for (const { end } of left) {
            try {
                await end();
            } catch {
                // It ended by itself meanwhile.
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

/** Where a timer was made; null for one that Node or its libraries share among all who use them. */
function callerOf(stack: string): string | null {
    const frames = framesOf(stack);
    const first = frames.findIndex(
        (frame) =>
            !frame.includes(import.meta.url) &&
            !/node:(?:internal\/(?:async_hooks|timers|fs\/watchers)|timers|fs)/.test(frame)
    );
    const frame = frames[first];
    return frame === undefined || frame.includes('node:') ? null : placeIn(frame);
}

function placeOf(stack: string): string {
    const frame = framesOf(stack).find((each) => !each.includes('node:') && !each.includes(import.meta.url));
    return frame === undefined ? 'an unknown place' : placeIn(frame);
}

function framesOf(stack: string): readonly string[] {
    return stack
        .split('\n')
        .slice(1)
        .map((line) => line.trim().replace(/^at (?:async )?/, ''));
}

/** File and line, without where the package lies. */
function placeIn(frame: string): string {
    const { file = frame, line = '' } = /(?<file>[^\s(]+?):(?<line>\d+):\d+\)?$/.exec(frame)?.groups ?? {};
    return `${file.split('/').slice(-2).join('/')}:${line}`;
}
