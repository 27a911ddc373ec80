/**
 * The port between the panel and a proxy engine. `CaddyDriver` implements it; tests use a double that fails on demand. One contract suite
 * (`test/core/engine/contract.ts`) runs over both.
 */

/** A JSON document in the engine's own language. */
export type EngineConfig = Readonly<Record<string, unknown>>;

/** The engine understood the request and refused it. `message` is the engine's own. Nothing changed. */
export class EngineRejected extends Error {
    override readonly name = 'EngineRejected';
}

/** The engine does not answer, or could not be started; `message` says why. */
export class EngineUnavailable extends Error {
    override readonly name = 'EngineUnavailable';
}

/** The version that the engine's binary reports. */
export interface EngineVersion {
    readonly text: string;
    readonly major: number;
    readonly minor: number;
    readonly patch: number;
}

/** How the engine's process is. */
export type ProcessState =
    /** The binary is not installed. */
    | 'missing'
    /** The engine should not run: it runs only after `start`. */
    | 'stopped'
    | 'running'
    /** The engine should run and does not answer. The supervisor restarts it, with back-off. */
    | 'failing';

/** What is known about the engine's process. */
export interface EngineProcess {
    readonly state: ProcessState;
    readonly version: EngineVersion | null;
    readonly pid: number | null;
    /** When the running process began; null unless running. */
    readonly startedAt: Date | null;
    /** Why it is `failing` or `missing`, or why it failed last; null when there is no reason. */
    readonly message: string | null;
}

/** The health of one upstream address as the engine sees it. */
export interface EngineUpstream {
    readonly address: string;
    /** Requests in flight now. */
    readonly requests: number;
    /** Failures remembered by passive checks. */
    readonly fails: number;
}

/** Which lines of a log to read. */
export interface LogOptions {
    /** Number of the last lines to begin with. */
    readonly lines: number;
    /** Whether to go on with each further line. */
    readonly follow: boolean;
    readonly signal: AbortSignal;
}

/** How a configuration is loaded. */
export interface LoadOptions {
    /** Waits a moment for the connections that the previous configuration still answers, 25 ms at most. */
    readonly drain?: boolean;
}

/** Controls one engine: its process, its configuration, its log. */
export interface EngineDriver {
    /** What is known now, without asking the engine. */
    process(): EngineProcess;
    /**
     * Finds a running engine or starts one with the configuration that it was last given (`base` on the first start).
     * @returns when it answers; false when it was running already
     * @throws EngineUnavailable
     */
    start(base: EngineConfig): Promise<boolean>;
    /** Ends it and keeps it ended. @returns false when it was not running */
    stop(): Promise<boolean>;
    /**
     * Makes `config` the running configuration, whole; resolves when it serves.
     * @throws EngineRejected with the engine's message, the previous configuration serving on
     * @throws EngineUnavailable when it does not answer
     */
    load(config: EngineConfig, options?: LoadOptions): Promise<void>;
    /** Proves that `config` could be loaded, without loading it. @throws EngineRejected */
    validate(config: EngineConfig): Promise<void>;
    /** What it runs now; null when it runs nothing. @throws EngineUnavailable */
    config(): Promise<EngineConfig | null>;
    /** Whether it answers within that time, also while it is busy with a load. Never rejects. */
    answers(withinMs: number): Promise<boolean>;
    upstreams(): Promise<readonly EngineUpstream[]>;
    /** Its log, newest last: the last `lines` lines and, with `follow`, each further line until the signal aborts. */
    logs(options: LogOptions): AsyncIterable<string>;
    /** Called whenever `process()` changes by itself (crash, recovery, found again). */
    onChange(listener: (process: EngineProcess) => void): void;
    /** Ends timers and watchers. The engine itself keeps running. */
    close(): Promise<void>;
}
