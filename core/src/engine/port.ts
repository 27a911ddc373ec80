/**
 * The port between the panel and a proxy engine. `caddy.ts` is the one implementation; tests put a faulty one in its place
 * for what a real engine will not do on demand. One contract suite (`test/core/engine/contract.ts`) runs over each.
 */

/** A JSON document in the engine's own language. */
export type EngineConfig = Readonly<Record<string, unknown>>;

/** The engine understood us and refused: `message` is its own. Nothing changed. */
export class EngineRejected extends Error {
    override readonly name = 'EngineRejected';
}

/** The engine does not answer, or could not be started; `message` says why. */
export class EngineUnavailable extends Error {
    override readonly name = 'EngineUnavailable';
}

export interface EngineVersion {
    readonly text: string;
    readonly major: number;
    readonly minor: number;
    readonly patch: number;
}

export type ProcessState =
    /** The binary is not installed. */
    | 'missing'
    /** By wish: it runs only after `start`. */
    | 'stopped'
    | 'running'
    /** Should run and does not answer; the supervisor is on it, with back-off. */
    | 'failing';

export interface EngineProcess {
    readonly state: ProcessState;
    readonly version: EngineVersion | null;
    readonly pid: number | null;
    /** When the running process began; null unless running. */
    readonly startedAt: Date | null;
    /** Why it is `failing` or `missing`, or the last reason it failed; null when there is none. */
    readonly message: string | null;
}

/** Health of one dialled address as the engine sees it. */
export interface EngineUpstream {
    readonly address: string;
    /** Requests in flight now. */
    readonly requests: number;
    /** Failures remembered by passive checks. */
    readonly fails: number;
}

export interface EngineDriver {
    /** What is known now, without asking the engine. */
    process(): EngineProcess;
    /**
     * Finds a running engine or starts one with the configuration that it was last given (`base` on the first start).
     * Resolves when it answers. Running already: resolves `false`.
     * @throws EngineUnavailable
     */
    start(base: EngineConfig): Promise<boolean>;
    /** Ends it, and keeps it ended; not running already: resolves `false`. */
    stop(): Promise<boolean>;
    /**
     * Makes `config` the running configuration, whole; resolves when it serves.
     * @throws EngineRejected with the engine's message, the previous configuration serving on
     * @throws EngineUnavailable when it does not answer
     */
    load(config: EngineConfig): Promise<void>;
    /** Proves that `config` could be loaded, without loading it. @throws EngineRejected */
    validate(config: EngineConfig): Promise<void>;
    /** What it runs now; null when it runs nothing. @throws EngineUnavailable */
    config(): Promise<EngineConfig | null>;
    upstreams(): Promise<readonly EngineUpstream[]>;
    /** Its log, newest last: the last `lines` and, with `follow`, each further one until the signal ends. */
    logs(options: {
        readonly lines: number;
        readonly follow: boolean;
        readonly signal: AbortSignal;
    }): AsyncIterable<string>;
    /** Called whenever `process()` changes by itself (crash, recovery, found again). */
    onChange(listener: (process: EngineProcess) => void): void;
    /** Lets go of timers and watchers; the engine itself keeps running. */
    close(): Promise<void>;
}
