/** Runs restic. Secrets reach it by private files; its answers are JSON. */
import type { Child } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { type Invocation, invocationOf, type Target } from '../targets/target.ts';
import { failureOf } from './failures.ts';
import { type Document, readDocuments, readEnd } from './output.ts';

/** How one call of restic runs. */
export interface ResticOptions {
    readonly signal?: AbortSignal | undefined;
    readonly timeoutSeconds?: number | undefined;
    /** The call fails when restic says nothing for so long. */
    readonly silenceMs?: number | undefined;
    /** The repository that a copy reads. */
    readonly from?: Target | undefined;
    /** Exit codes that are no failure beside 0. */
    readonly accepted?: readonly number[];
    /** Keeps no document: `onDocument` gets each one as it comes. */
    readonly keepNone?: boolean;
    onDocument?(document: Document): void;
    /** Gets each line that is no JSON. */
    onLine?(line: string): void;
    /** The answer is one document over many lines. */
    readonly isWhole?: boolean;
}

/** What one call gave. */
export interface ResticResult {
    readonly code: number;
    readonly documents: readonly Document[];
    /** The end of what it said on standard error. */
    readonly said: string;
}

/** Exit code of a backup that could not read everything. */
export const partialCode = 3;
/** Said when restic ends before it has passed on why ssh did. Another attempt often says more. */
const unexplained = 'unable to start the sftp session';
/** How often restic is asked again for the words of ssh. */
const mostRepeats = 4;
/** How long restic may take to remove its lock after SIGINT. */
const patienceMs = 5_000;
/** How often a second restic says how far it is; by itself it does so 60 times, each of which is read and passed on. */
const progressFps = '2';
/** A call without a limit of its own ends after a day. */
const longestSeconds = 86_400;

/** Runs the program restic for a repository. */
export class Restic {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Runs restic to its end. When the signal aborts, it is asked to end, so that its lock goes; then it is killed.
     *
     * @throws TOOL_MISSING 50302; the plugin's errors for what restic says; the signal's reason
     */
    async run(target: Target, args: readonly string[], options: ResticOptions = {}): Promise<ResticResult> {
        for (let repeats = 0; ; repeats += 1) {
            try {
                return await this.#unlocked(target, args, options);
            } catch (error) {
                const { reason, message } = error as { readonly reason?: unknown; readonly message: string };
                const isExplained = reason !== 'RESTIC_FAILED' || !message.includes(unexplained);
                if (isExplained || repeats === mostRepeats) {
                    throw error;
                }
            }
        }
    }

    /** The bytes of a file in a snapshot, or of a folder as an archive. They must be read or cancelled. */
    async dump(
        target: Target,
        args: readonly string[],
        signal: AbortSignal
    ): Promise<AsyncIterable<Uint8Array>> {
        const invocation = invocationOf(target);
        const child = await this.#spawn(invocation, ['dump', ...args], longestSeconds);
        const end = (): void => void child.kill('SIGKILL').catch(() => undefined);
        signal.addEventListener('abort', end, { once: true });
        const said = readEnd(child.stderr);
        return (async function* bytes() {
            try {
                yield* child.stdout;
                const exit = await child.exited;
                if (exit.code !== 0) {
                    throw failureOf(await said, exit, invocation.secrets);
                }
            } finally {
                signal.removeEventListener('abort', end);
                await child[Symbol.asyncDispose]();
            }
        })();
    }

    /** One attempt, and another one where a program that has ended left a lock. */
    async #unlocked(target: Target, args: readonly string[], options: ResticOptions): Promise<ResticResult> {
        try {
            return await this.#attempt(target, args, options);
        } catch (error) {
            if ((error as { readonly reason?: unknown }).reason !== 'LOCKED' || args[0] === 'unlock') {
                throw error;
            }
            // Removes only locks whose program has ended, such as one that was killed.
            await this.#attempt(target, ['unlock'], { signal: options.signal });
            return this.#attempt(target, args, options);
        }
    }

    async #attempt(target: Target, args: readonly string[], options: ResticOptions): Promise<ResticResult> {
        const { signal, onDocument, accepted = [], keepNone = false } = options;
        signal?.throwIfAborted();
        const invocation = invocationOf(target, options.from);
        const child = await this.#spawn(
            invocation,
            ['--json', ...args],
            options.timeoutSeconds ?? longestSeconds
        );
        const silence = new Silence(options.silenceMs ?? null, child);
        let kill: NodeJS.Timeout | undefined;
        const cancel = (): void => {
            void child.kill('SIGINT').catch(() => undefined);
            kill = setTimeout(() => void child.kill('SIGKILL').catch(() => undefined), patienceMs);
        };
        signal?.addEventListener('abort', cancel, { once: true });
        try {
            const documents: Document[] = [];
            const [, said, exit] = await Promise.all([
                readDocuments(
                    child.stdout,
                    (document) => {
                        silence.end();
                        onDocument?.(document);
                        if (!keepNone && document['message_type'] !== 'status') {
                            documents.push(document);
                        }
                    },
                    options
                ),
                readEnd(child.stderr, () => silence.end()),
                child.exited
            ]);
            signal?.throwIfAborted();
            const code = exit.code ?? -1;
            if (silence.isOver) {
                throw fail.TARGET_UNREACHABLE({ message: 'restic said nothing for too long' });
            }
            if (code !== 0 && !accepted.includes(code)) {
                throw failureOf(said, exit, invocation.secrets);
            }
            return { code, documents, said };
        } finally {
            silence.stop();
            clearTimeout(kill);
            signal?.removeEventListener('abort', cancel);
            await child[Symbol.asyncDispose]();
        }
    }

    #spawn(
        { args, env, files }: Invocation,
        more: readonly string[],
        timeoutSeconds: number
    ): Promise<Child> {
        return this.#ctx.spawn('restic', [...args, ...more], {
            privateFiles: files,
            env: { ...env, RESTIC_CACHE_DIR: `${this.#ctx.dataDir}/cache`, RESTIC_PROGRESS_FPS: progressFps },
            timeoutSeconds
        });
    }
}

/** Kills a program that has said nothing for too long. */
class Silence {
    readonly #limitMs: number | null;
    readonly #child: Child;
    #timer: NodeJS.Timeout | undefined;
    /** Whether it was too long. */
    isOver = false;

    constructor(limitMs: number | null, child: Child) {
        this.#limitMs = limitMs;
        this.#child = child;
        this.end();
    }

    /** The program said something. */
    end(): void {
        this.stop();
        if (this.#limitMs !== null && !this.isOver) {
            this.#timer = setTimeout(() => {
                this.isOver = true;
                void this.#child.kill('SIGKILL').catch(() => undefined);
            }, this.#limitMs);
        }
    }

    stop(): void {
        clearTimeout(this.#timer);
    }
}
