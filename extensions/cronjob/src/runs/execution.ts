/** One run of one program, from its account and its file to its exit code. */
import { stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

import { type Bytes, type Child, errors, isFailure } from '@portico/sdk';

import { type Account, type Accounts, runsAsOthers } from './accounts.ts';
import { failures } from '../errors.ts';
import type { Output } from './output.ts';
import { interpreterOf, type PlacedScript, placeScript } from './script.ts';
import type { Ctx } from '../settings.ts';

/** What is to be run. */
export interface Job {
    readonly runId: number;
    readonly taskId: number;
    readonly command: readonly string[] | null;
    readonly script: string | null;
    readonly user: string | null;
    readonly cwd: string | null;
    /** Sealed. */
    readonly env: string | null;
    readonly timeoutSeconds: number | null;
    readonly mark: string;
}

/** How it ended. */
export interface Ending {
    readonly state: 'succeeded' | 'failed' | 'timeout' | 'stopped';
    readonly exitCode: number | null;
    /** The signal that ended it. */
    readonly signal: string | null;
    readonly reason: string | null;
    readonly message: string | null;
}

/** Name of the variable by which the processes of a run are found again after the panel was killed. */
export const markName = 'CRONJOB_MARK';

/** How long pipes may stay open when everybody who wrote into them has ended. */
const pipeGraceMs = 2_000;

export interface ExecutionOptions {
    readonly ctx: Ctx;
    readonly accounts: Accounts;
    readonly output: Output;
    /** Ends the run with all of its processes. */
    readonly signal: AbortSignal;
    /** Hears the path of a script's file before there is one. */
    placed(path: string): Promise<void>;
}

/** Runs it. Whatever goes wrong is an ending, too: nothing is thrown. */
export async function execute(job: Job, options: ExecutionOptions): Promise<Ending> {
    let script: PlacedScript | null = null;
    try {
        const account = await accountOf(job.user, options.accounts);
        options.signal.throwIfAborted();
        if (job.script !== null) {
            script = await placeScript(options.ctx, job.script, account, options.placed);
        }
        const { file, args } = programOf(job, script);
        return await run(job, file, args, account, options);
    } catch (error) {
        return options.signal.aborted ? { ...nothing, state: 'stopped' } : failed(error, options.ctx, job);
    } finally {
        await script?.remove().catch((error: unknown) =>
            options.ctx.log.warn('The file of a script could not be removed', {
                run: job.runId,
                error: String(error)
            })
        );
    }
}

const nothing = { exitCode: null, signal: null, reason: null, message: null } as const;

async function accountOf(user: string | null, accounts: Accounts): Promise<Account> {
    const account = await accounts.find(user);
    if (account === null) {
        throw errors.notFound(`This machine has no account ${user ?? ''}`);
    }
    if (!account.own && !runsAsOthers()) {
        throw failures.NOT_ROOT({ user: account.name });
    }
    return account;
}

function programOf(
    { command, script: text }: Job,
    script: PlacedScript | null
): { readonly file: string; readonly args: readonly string[] } {
    if (text !== null && script !== null) {
        const { file, args } = interpreterOf(text);
        return { file, args: [...args, script.path] };
    }
    const [file = '', ...args] = command ?? [];
    return { file, args };
}

async function run(
    job: Job,
    file: string,
    args: readonly string[],
    account: Account,
    { ctx, output, signal }: ExecutionOptions
): Promise<Ending> {
    const env =
        job.env === null ? {} : (JSON.parse(await ctx.secrets.open(job.env)) as Record<string, string>);
    const child = await ctx.spawn(file, args, {
        cwd: job.cwd ?? (await homeOf(account)),
        env: {
            HOME: account.home,
            USER: account.name,
            LOGNAME: account.name,
            SHELL: '/bin/sh',
            CRONJOB_TASK: String(job.taskId),
            CRONJOB_RUN: String(job.runId),
            ...env,
            [markName]: job.mark
        },
        signal,
        ...(job.user === null ? {} : { user: job.user }),
        ...(job.timeoutSeconds === null ? {} : { timeoutSeconds: job.timeoutSeconds })
    });
    const pumps = [pump(child.stdout, output), pump(child.stderr, output)];
    child.stdin.close().catch(() => undefined);
    const exit = await child.exited;
    // What is asked of a program that has ended already did not stop it.
    const stopped = signal.aborted;
    const stuck = await ended(child);
    const read = new AbortController();
    await Promise.race([
        Promise.all(pumps.map(({ done }) => done)),
        wait(pipeGraceMs, undefined, { ref: false, signal: read.signal }).catch(() => undefined)
    ]);
    read.abort();
    await Promise.all(pumps.map(({ stop }) => stop()));
    const how = {
        exitCode: exit.code,
        signal: exit.signal,
        reason: stuck === null ? null : 'DOES_NOT_END',
        message: stuck
    };
    if (exit.timedOut) {
        return {
            ...how,
            state: 'timeout',
            reason: how.reason ?? 'TIMEOUT',
            message:
                stuck ??
                `It took longer than ${job.timeoutSeconds ?? 0} s, and was ended with everything that it had started`
        };
    }
    if (stopped) {
        return { ...how, state: 'stopped' };
    }
    const state = exit.code === 0 ? 'succeeded' : 'failed';
    return {
        ...how,
        state,
        reason: how.reason ?? (state === 'succeeded' ? null : exit.code === null ? 'SIGNAL' : 'EXIT_CODE')
    };
}

/** Ends what the program left behind; what cannot be ended is said. */
async function ended(child: Child): Promise<string | null> {
    try {
        await child[Symbol.asyncDispose]();
        return null;
    } catch (error) {
        return error instanceof Error ? error.message : String(error);
    }
}

/** Accounts of services often name a home that is not there. */
async function homeOf({ home }: Account): Promise<string> {
    const there = await stat(home).then(
        (found) => found.isDirectory(),
        () => false
    );
    return there ? home : '/';
}

function pump(stream: Bytes, output: Output): { readonly done: Promise<void>; stop(): Promise<void> } {
    const reader = stream.getReader();
    const decoder = new TextDecoder();
    const done = (async () => {
        try {
            for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
                output.add(decoder.decode(chunk.value, { stream: true }));
            }
        } catch {
            // The pipe broke: nothing comes any more.
        }
        output.add(decoder.decode());
    })();
    return {
        done,
        async stop() {
            await reader.cancel().catch(() => undefined);
            await done;
        }
    };
}

function failed(error: unknown, ctx: Ctx, { runId }: Job): Ending {
    if (isFailure(error)) {
        return { ...nothing, state: 'failed', reason: error.reason, message: error.message };
    }
    const { code, message } = error as NodeJS.ErrnoException;
    if (typeof code === 'string') {
        return { ...nothing, state: 'failed', reason: code, message: `The system refused: ${message}` };
    }
    ctx.log.error('A run could not be started', { run: runId, error: String(error) });
    return {
        ...nothing,
        state: 'failed',
        reason: 'INTERNAL',
        message: 'It could not be started; the log says why'
    };
}
