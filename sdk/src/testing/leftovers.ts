/** Notices what a plugin's code starts and leaves running, and where it was started: timers, servers, connections, children, watchers, listeners. */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';

/** What of Node's kinds of resources goes on by itself. */
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
    HTTPCLIENTREQUEST: 'a request',
    TTYWRAP: 'a terminal'
};

interface Started {
    readonly what: string;
    readonly where: string;
    end(): void;
}

/** One plugin's code: everything that is started inside `run` is its. */
export interface Watch {
    run<T>(work: () => T): T;
    /** Work of the host on behalf of the plugin, which is not the plugin's. */
    outside<T>(work: () => T): T;
    /** What still goes on, in words with the place; it is ended, so that a test runner can go on. */
    end(): Promise<readonly string[]>;
}

interface Watched {
    readonly started: Map<number, Started>;
}

const scope = new AsyncLocalStorage<Watched | null>();
const owners = new Map<number, Watched>();
let active = 0;

const hook = createHook({
    init(id, type, _trigger, resource) {
        const watched = Object.hasOwn(lasting, type) ? scope.getStore() : undefined;
        if (watched !== undefined && watched !== null) {
            const { stack = '' } = new Error();
            // The time limit of a signal ends by itself, and nobody could end it earlier.
            if (!stack.includes('AbortSignal.timeout')) {
                watched.started.set(id, {
                    what: lasting[type] ?? type,
                    where: placeOf(stack),
                    end: () => end(type, resource)
                });
                owners.set(id, watched);
            }
        }
    },
    destroy(id) {
        owners.get(id)?.started.delete(id);
        owners.delete(id);
    }
});

/** Begins to watch. */
export function watchLeftovers(): Watch {
    const watched: Watched = { started: new Map() };
    const listeners = new Map<string | symbol, readonly unknown[]>(
        process.eventNames().map((event) => [event, process.listeners(event as 'exit')])
    );
    const added: {
        readonly event: string | symbol;
        readonly listener: (...args: unknown[]) => void;
        readonly where: string;
    }[] = [];
    const onListener = (event: string | symbol, listener: (...args: unknown[]) => void): void => {
        if (scope.getStore() === watched && event !== 'newListener') {
            added.push({ event, listener, where: placeOf(new Error().stack ?? '') });
        }
    };
    if (active === 0) {
        hook.enable();
    }
    active += 1;
    process.on('newListener', onListener);
    return {
        run: (work) => scope.run(watched, work),
        outside: (work) => scope.run(null, work),
        async end() {
            // What has just ended is reported as gone a turn later.
            for (let turn = 0; turn < 3; turn += 1) {
                await new Promise((resolve) => setImmediate(resolve));
            }
            process.off('newListener', onListener);
            active -= 1;
            if (active === 0) {
                hook.disable();
            }
            const still = added.filter(
                ({ event, listener }) =>
                    process.listeners(event as 'exit').includes(listener as never) &&
                    listeners.get(event)?.includes(listener) !== true
            );
            still.forEach(({ event, listener }) => process.off(event as 'exit', listener));
            const left = [...watched.started]
                .map(([id, started]) => {
                    owners.delete(id);
                    started.end();
                    return `${started.what}${started.where}`;
                })
                .filter((each) => still.length === 0 || !each.startsWith('a listener for a signal'));
            return [
                ...left,
                ...still.map(({ event, where }) => `a listener for ${String(event)} of the process${where}`)
            ];
        }
    };
}

/** The first step of the stack that is neither Node's, nor the kit's, nor a library's. */
function placeOf(stack: string): string {
    const own = stack
        .split('\n')
        .slice(1)
        .map((line) => line.trim())
        .find(
            (line) =>
                /file:|^at (?:.* \()?\//.test(line) &&
                !/node:|\/testing\/leftovers\.|\/boundary\/|node_modules\//.test(line)
        );
    return own === undefined ? '' : `, made ${own.replace(/^at async /, 'at ')}`;
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
