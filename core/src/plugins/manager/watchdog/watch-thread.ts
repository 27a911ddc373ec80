/**
 * The thread that watches the main thread: it goes on while a plugin keeps the event loop from running. It loads nothing but this folder and Node's own
 * modules. It asks V8 for the stack of the main thread only when that thread is blocked, because a connected debugger costs speed.
 */
import { writeSync } from 'node:fs';
import type { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

import { type Culprit, culpritOn } from './culprit.ts';
import { type Incident, keepIncident } from './incident.ts';
import { type MemoryLimits, MemoryWatch } from './memory-watch.ts';

/** What the thread gets. */
export interface WatchOptions {
    /** The main thread raises the first number at every turn of its timer. */
    readonly beat: Int32Array;
    /** The folder of incidents. */
    readonly folder: string;
    readonly limits: MemoryLimits;
    readonly timing: WatchTiming;
}

/** How often the watch thread looks, and how long a plugin may block; all in milliseconds. */
export interface WatchTiming {
    /** Between two looks. */
    readonly everyMs: number;
    /** A plugin that blocks the main thread for longer is named. */
    readonly blockedMs: number;
    /** A process that a plugin blocks for longer is ended. */
    readonly endedMs: number;
}

/** A plugin's code lies in this folder. */
export interface WatchedPlugin {
    readonly plugin: string;
    /** Real path. */
    readonly folder: string;
}

const { beat, folder, limits, timing } = workerData as WatchOptions;
/** Names of plugins by their folders. */
const plugins = new Map<string, string>();

function note(plugin: string, code: Incident['code'], message: string): void {
    parentPort?.postMessage(keepIncident(folder, { plugin, code, message, at: Date.now() }));
}

async function connect(): Promise<Session> {
    const inspector = await import('node:inspector'); // takes memory, so only when it is needed
    const session = new inspector.Session();
    session.connectToMainThread();
    return session;
}

/** Watches the beat of the main thread. Time is counted in looks, so a machine that slept is not taken for a plugin that blocks. */
class LoopWatch {
    #last = -1;
    #stillMs = 0;
    /** Of `stillMs`, when the culprit was named. */
    #namedMs = 0;
    #culprit: Culprit | null = null;

    async check(): Promise<void> {
        const now = Atomics.load(beat, 0);
        if (now !== this.#last) {
            this.#last = now;
            this.#stillMs = 0;
            this.#culprit = null;
            return;
        }
        const before = this.#stillMs;
        this.#stillMs += timing.everyMs;
        if (this.#culprit !== null && this.#stillMs - this.#namedMs >= timing.endedMs - timing.blockedMs) {
            writeSync(
                2,
                `The panel ends, because the plugin ${this.#culprit.plugin} has blocked it for ${timing.endedMs / 1000} s, in ${this.#culprit.place}\n`
            );
            process.kill(process.pid, 'SIGKILL'); // nothing else ends a thread that never waits
        }
        if (before < timing.blockedMs && this.#stillMs >= timing.blockedMs) {
            await this.#nameBlocker();
        }
    }

    async #nameBlocker(): Promise<void> {
        const session = await connect();
        const urls = new Map<string, string>();
        session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => urls.set(scriptId, url));
        session.once('Debugger.paused', ({ params: { callFrames } }) => {
            session.post('Debugger.resume');
            session.post('Debugger.disable', () => session.disconnect());
            const stack = callFrames.map(({ location: { scriptId, lineNumber } }) => ({
                url: urls.get(scriptId) ?? '',
                line: lineNumber + 1
            }));
            // Another beat means that the block has ended, and that other code runs by now.
            this.#culprit = Atomics.load(beat, 0) === this.#last ? culpritOn(stack, plugins) : null;
            if (this.#culprit !== null) {
                const { plugin, place } = this.#culprit;
                this.#namedMs = this.#stillMs;
                note(
                    plugin,
                    'LOOP_BLOCKED',
                    `It blocked the whole panel for more than ${timing.blockedMs / 1000} s, in ${place}`
                );
            }
        });
        // Both at once: a thread that is in a call of the system, such as execFileSync, takes them together when the call returns.
        session.post('Debugger.enable');
        session.post('Debugger.pause');
    }
}

const loopWatch = new LoopWatch();
const memoryWatch = new MemoryWatch({
    limits,
    plugins,
    connect,
    named: (plugin, message) => note(plugin, 'MEMORY_EXHAUSTED', message)
});
parentPort?.on('message', (found: WatchedPlugin) => plugins.set(found.folder, found.plugin));
setInterval(() => {
    // What cannot be found out now is looked at again in the next turn.
    void loopWatch.check().catch(() => undefined);
    void memoryWatch.check().catch(() => undefined);
}, timing.everyMs);
