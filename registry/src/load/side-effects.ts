/** Finds what a piece of code starts and leaves running: timers, servers, connections, children, watchers, listeners on the process. */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';

/** The kinds of Node's resources that go on by themselves. Reads of files, promises and the like end with the code that waits for them. */
const lasting: Readonly<Record<string, string>> = {
    Timeout: 'a timer',
    Immediate: 'a timer',
    PROCESSWRAP: 'a child process',
    TCPSERVERWRAP: 'a server',
    PIPESERVERWRAP: 'a server',
    TCPWRAP: 'a connection',
    PIPEWRAP: 'a connection',
    UDPWRAP: 'a socket',
    FSEVENTWRAP: 'a watcher of files',
    STATWATCHER: 'a watcher of files',
    WORKER: 'a worker thread',
    SIGNALWRAP: 'a listener for a signal',
    HTTPINCOMINGMESSAGE: 'a connection',
    HTTPCLIENTREQUEST: 'a request',
    GETADDRINFOREQWRAP: 'a look-up of a name',
    TTYWRAP: 'a terminal'
};
interface Watched {
    readonly resources: Map<number, { readonly type: string; readonly resource: object }>;
    readonly listeners: {
        readonly event: string | symbol;
        readonly listener: (...args: unknown[]) => void;
    }[];
}

const scope = new AsyncLocalStorage<Watched>();
const watching = new Map<number, Watched>();
let active = 0;

// The asynchronous context says which code a resource belongs to, so the panel's own work does not count.
const hook = createHook({
    init(id, type, _trigger, resource) {
        const watched = Object.hasOwn(lasting, type) ? scope.getStore() : undefined;
        if (watched !== undefined) {
            watched.resources.set(id, { type, resource });
            watching.set(id, watched);
        }
    },
    destroy(id) {
        watching.get(id)?.resources.delete(id);
        watching.delete(id);
    }
});

function onListener(event: string | symbol, listener: (...args: unknown[]) => void): void {
    scope.getStore()?.listeners.push({ event, listener });
}

/** What a call left running. */
export interface Leaks {
    /** In words, each kind once; empty when nothing was. */
    readonly kinds: readonly string[];
    /** Ends what can be ended from outside. */
    release(): void;
}

/**
 * Runs `work` and says what it left running when it ended, or when `giveUp` resolved first.
 *
 * @returns what `work` answered or threw, and the leaks; `outcome` is null when `giveUp` came first
 */
export async function watch<T>(
    work: () => Promise<T>,
    giveUp: Promise<void>
): Promise<{
    readonly outcome: { readonly value: T } | { readonly error: unknown } | null;
    readonly leaks: Leaks;
}> {
    const watched: Watched = { resources: new Map(), listeners: [] };
    if (active === 0) {
        hook.enable();
        process.on('newListener', onListener);
    }
    active += 1;
    try {
        const done = scope.run(watched, work).then(
            (value) => ({ value }),
            (error: unknown) => ({ error })
        );
        const outcome = await Promise.race([done, giveUp.then(() => null)]);
        // A resource that ended is reported as gone a turn later.
        await scope.exit(async () => {
            await turn();
            await turn();
        });
        return { outcome, leaks: leaksOf(watched) };
    } finally {
        active -= 1;
        if (active === 0) {
            hook.disable();
            process.off('newListener', onListener);
        }
        for (const id of watched.resources.keys()) {
            watching.delete(id);
        }
    }
}

function leaksOf({ resources, listeners }: Watched): Leaks {
    const still = listeners.filter(({ event, listener }) =>
        process.listeners(event as 'exit').some((each) => each === listener)
    );
    const kinds = new Set([...resources.values()].map(({ type }) => lasting[type] ?? type));
    for (const { event } of still) {
        kinds.delete('a listener for a signal');
        kinds.add(`a listener for ${String(event)} of the process`);
    }
    return {
        kinds: [...kinds].sort(),
        release() {
            for (const { event, listener } of still) {
                process.off(event as 'exit', listener);
            }
            for (const { type, resource } of resources.values()) {
                end(type, resource);
            }
        }
    };
}

function end(type: string, resource: object): void {
    const { kill, close } = resource as { kill?: (signal: number) => void; close?: () => void };
    if (type === 'Timeout') {
        clearTimeout(resource as NodeJS.Timeout);
    } else if (type === 'Immediate') {
        clearImmediate(resource as NodeJS.Immediate);
    } else if (type === 'PROCESSWRAP' && kill !== undefined) {
        kill.call(resource, 9);
    } else {
        close?.call(resource);
    }
}
