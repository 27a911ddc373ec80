/** Runs restic. Secrets reach it by private files; its answers are JSON, one document a line. */
import { errors, type Exit } from '@portico/sdk';

import { pluginErrors } from '../errors.ts';
import type { Ctx } from '../settings.ts';

/** A repository that can be opened. */
export interface Target {
    /** Absolute. */
    readonly path: string;
    readonly password: string;
}

/** How one call of restic runs. */
export interface ResticOptions {
    readonly signal?: AbortSignal;
    readonly timeoutSeconds?: number;
    /** Gets each document as it comes. */
    onDocument?(document: Readonly<Record<string, unknown>>): void;
}

/** What one call gave. */
export interface ResticResult {
    readonly code: number;
    readonly documents: readonly Readonly<Record<string, unknown>>[];
    /** The end of what it said on standard error. */
    readonly said: string;
}

/** Exit code of a backup that could not read everything. */
export const partialCode = 3;
const keptSaid = 4_096;
/** How long restic may take to remove its lock after SIGINT. */
const patienceMs = 5_000;

/** Calls the program. */
export class Restic {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Runs restic to its end. When the signal aborts, it is asked to end, so that its lock goes; then it is killed.
     *
     * @param accepted - exit codes that are no failure beside 0
     * @throws TOOL_MISSING 50302; the plugin's errors for what restic says; the signal's reason
     */
    async run(
        target: Target,
        args: readonly string[],
        options: ResticOptions = {},
        accepted: readonly number[] = []
    ): Promise<ResticResult> {
        try {
            return await this.#attempt(target, args, options, accepted);
        } catch (error) {
            if ((error as { reason?: unknown }).reason !== 'LOCKED' || args[0] === 'unlock') {
                throw error;
            }
            // Removes only locks whose program has ended, such as one that was killed.
            await this.#attempt(target, ['unlock'], options, []);
            return this.#attempt(target, args, options, accepted);
        }
    }

    async #attempt(
        target: Target,
        args: readonly string[],
        { signal, timeoutSeconds, onDocument }: ResticOptions,
        accepted: readonly number[]
    ): Promise<ResticResult> {
        signal?.throwIfAborted();
        const child = await this.#spawn(target, ['--json', ...args], timeoutSeconds);
        let kill: NodeJS.Timeout | undefined;
        const cancel = (): void => {
            void child.kill('SIGINT').catch(() => undefined);
            kill = setTimeout(() => void child.kill('SIGKILL').catch(() => undefined), patienceMs);
        };
        signal?.addEventListener('abort', cancel, { once: true });
        try {
            const documents: Readonly<Record<string, unknown>>[] = [];
            const [, said, exit] = await Promise.all([
                readDocuments(child.stdout, (document) => {
                    onDocument?.(document);
                    if (document['message_type'] !== 'status') {
                        documents.push(document);
                    }
                }),
                readEnd(child.stderr),
                child.exited
            ]);
            signal?.throwIfAborted();
            const code = exit.code ?? -1;
            if (code !== 0 && !accepted.includes(code)) {
                throw failureOf(said, exit);
            }
            return { code, documents, said };
        } finally {
            clearTimeout(kill);
            signal?.removeEventListener('abort', cancel);
            await child[Symbol.asyncDispose]();
        }
    }

    /** The bytes of a file in a snapshot, or of a folder as an archive. They must be read or cancelled. */
    async dump(
        target: Target,
        args: readonly string[],
        signal: AbortSignal
    ): Promise<AsyncIterable<Uint8Array>> {
        const child = await this.#spawn(target, ['dump', ...args]);
        const end = (): void => void child.kill('SIGKILL').catch(() => undefined);
        signal.addEventListener('abort', end, { once: true });
        const said = readEnd(child.stderr);
        return (async function* bytes() {
            try {
                yield* child.stdout;
                const exit = await child.exited;
                if (exit.code !== 0) {
                    throw failureOf(await said, exit);
                }
            } finally {
                signal.removeEventListener('abort', end);
                await child[Symbol.asyncDispose]();
            }
        })();
    }

    #spawn(
        { path, password }: Target,
        args: readonly string[],
        timeoutSeconds?: number
    ): ReturnType<Ctx['spawn']> {
        return this.#ctx.spawn('restic', args, {
            privateFiles: { repository: path, password },
            env: {
                RESTIC_REPOSITORY_FILE: 'repository',
                RESTIC_PASSWORD_FILE: 'password',
                RESTIC_CACHE_DIR: `${this.#ctx.dataDir}/cache`
            },
            ...(timeoutSeconds === undefined ? {} : { timeoutSeconds })
        });
    }
}

/** What restic's words mean. They are those of 0.14 to 0.17. */
function failureOf(said: string, { code, signal, timedOut }: Exit): Error {
    const lines = said.split('\n').map((line) => line.trim());
    const message = (
        lines.find((line) => /^Fatal:|already locked/.test(line)) ??
        lines.findLast((line) => line !== '') ??
        `restic ended with ${code ?? signal ?? 'no code'}`
    ).replace(/^Fatal: /, '');
    if (/wrong password or no key found/.test(said)) {
        return pluginErrors.PASSWORD_WRONG();
    }
    if (/Is there a repository at|unable to open config file|repository does not exist/.test(said)) {
        return pluginErrors.NOT_A_REPOSITORY();
    }
    if (/already locked/.test(said)) {
        return pluginErrors.LOCKED({ message });
    }
    if (/config file already exists|already initialized/.test(said)) {
        return errors.conflict('path');
    }
    if (/no matching ID found|no snapshot found|not found in snapshot|path .* not found/.test(said)) {
        return errors.notFound('There is no such snapshot, or nothing at that path in it');
    }
    if (/no space left on device/.test(said)) {
        return errors.storageFull();
    }
    if (/permission denied/.test(said)) {
        return pluginErrors.TARGET_REFUSED({ message });
    }
    return pluginErrors.TARGET_UNREACHABLE({ message: timedOut ? 'it took too long' : message });
}

async function readDocuments(
    stream: AsyncIterable<Uint8Array>,
    take: (document: Readonly<Record<string, unknown>>) => void
): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    const takeLine = (line: string): void => {
        const parsed = documentsIn(line);
        parsed.forEach(take);
    };
    for await (const chunk of stream) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        lines.forEach(takeLine);
    }
    takeLine(rest + decoder.decode());
}

/** The documents of a line. Some commands write progress between them that is no JSON. */
function documentsIn(line: string): readonly Readonly<Record<string, unknown>>[] {
    if (!/^\s*(\{|\[[\]{])/.test(line)) {
        return [];
    }
    try {
        const parsed = JSON.parse(line) as Readonly<Record<string, unknown>>;
        return Array.isArray(parsed) ? (parsed as readonly Readonly<Record<string, unknown>>[]) : [parsed];
    } catch {
        return [];
    }
}

async function readEnd(stream: AsyncIterable<Uint8Array>): Promise<string> {
    const decoder = new TextDecoder();
    let said = '';
    for await (const chunk of stream) {
        said = (said + decoder.decode(chunk, { stream: true })).slice(-keptSaid);
    }
    return said;
}
