/** Executes one run: finds the account, places the script, runs the program and reports how it ended. */
import { stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

import {
    type Child,
    errors,
    type Exit,
    type GroupLimits,
    isFailure,
    messageOf,
    type Usage
} from '@portico/sdk';

import { fail } from '../../errors.ts';
import { filledIn, type ShownValues, type Values, variablesOf } from '../../parameters/values.ts';
import type { Ctx } from '../../settings.ts';
import type { Sandbox } from '../../tasks/input/sandbox-input.ts';
import type { RequestWork, RouteWork } from '../../tasks/input/work-input.ts';
import type { Output } from '../output/output.ts';
import { OutputReader } from '../output/output-reader.ts';
import { emptyResult, type RunResult } from '../results/result.ts';
import { type Account, type Accounts, canRunAsOthers } from './accounts.ts';
import { sendRequest } from './request.ts';
import { callRoute } from './route-call.ts';
import { inSandbox, type Program, type SandboxedProgram } from './sandbox.ts';
import { interpreterOf, type PlacedScript, placeScript } from './script.ts';

/** What one run executes. */
export interface Job {
    readonly runId: number;
    readonly taskId: number;
    readonly command: readonly string[] | null;
    readonly script: string | null;
    readonly user: string | null;
    readonly cwd: string | null;
    /** JSON object of names and values, sealed. */
    readonly env: string | null;
    readonly timeoutSeconds: number | null;
    readonly request: RequestWork | null;
    /** JSON object of the headers of the request, sealed. */
    readonly headers: string | null;
    readonly route: RouteWork | null;
    readonly mandate: number | null;
    /** Of all processes of the run together. */
    readonly limits: GroupLimits | null;
    readonly sandbox: Sandbox | null;
    /** JSON object of values by name, those of secret parameters masked. */
    readonly parameters: string | null;
    /** JSON object, sealed, of the given values of secret parameters; they take the place of the defaults. */
    readonly secretParameters: string | null;
    readonly parameterDefaults: string | null;
    /** Value of {@link markVariable} in this run's processes. */
    readonly mark: string;
}

/** Environment variable by which the processes of a run are found after the panel was killed. */
export const markVariable = 'CRONJOB_MARK';

/** How long the output pipes may stay open after all processes of the run have ended. */
const pipeGraceMs = 2_000;

/** What an execution needs beside its job. */
export interface ExecutionOptions {
    readonly ctx: Ctx;
    readonly accounts: Accounts;
    readonly output: Output;
    /** Its abort ends the run with all of its processes. */
    readonly signal: AbortSignal;
    /** Is called with the path of the script's file before the file is created. */
    onScriptPath(path: string): Promise<void>;
}

/** Executes a job. Never throws: a failure to begin is a result too. */
export async function execute(job: Job, options: ExecutionOptions): Promise<RunResult> {
    let script: PlacedScript | null = null;
    try {
        if (job.request !== null || job.route !== null) {
            return await call(job, options);
        }
        const account = await findAccount(job.user, options.accounts);
        options.signal.throwIfAborted();
        if (job.script !== null) {
            script = await placeScript(options.ctx, job.script, account, options.onScriptPath);
        }
        const values = await openValues(options.ctx, job);
        const program = await inSandbox(options.ctx, programOf(job, script, values), {
            ...{ sandbox: job.sandbox, account, script: script?.path ?? null },
            cwd: job.cwd
        });
        return await run(
            job,
            { ...program, env: { ...variablesOf(values), ...program.env } },
            account,
            options
        );
    } catch (error) {
        return options.signal.aborted
            ? { ...emptyResult, state: 'stopped' }
            : failureResult(error, options.ctx, job);
    } finally {
        await script?.remove().catch((error: unknown) =>
            options.ctx.log.warn('The file of a script could not be removed', {
                run: job.runId,
                error: String(error)
            })
        );
    }
}

/** Runs what is no program. It ends with the time limit as programs do. */
async function call(job: Job, { ctx, output, signal }: ExecutionOptions): Promise<RunResult> {
    const { request, route, mandate, timeoutSeconds } = job;
    const late = new AbortController();
    const timer =
        timeoutSeconds === null ? undefined : setTimeout(() => late.abort(), timeoutSeconds * 1000).unref();
    const run = { ctx, output, signal: AbortSignal.any([signal, late.signal]) };
    try {
        const result =
            request === null
                ? await callRoute(route as RouteWork, mandate, run)
                : await sendRequest({ ...request, headers: await openHeaders(ctx, job) }, run);
        run.signal.throwIfAborted();
        return result;
    } catch (error) {
        if (late.signal.aborted && !signal.aborted) {
            return { ...emptyResult, state: 'timeout', reason: 'TIMEOUT', message: tooLong(job) };
        }
        throw error;
    } finally {
        clearTimeout(timer);
    }
}

async function openHeaders(ctx: Ctx, { headers }: Job): Promise<Record<string, string>> {
    return headers === null ? {} : (JSON.parse(await ctx.secrets.open(headers)) as Record<string, string>);
}

function tooLong({ timeoutSeconds }: Job): string {
    return `It took longer than ${timeoutSeconds ?? 0} s, and was ended with all processes that it had started`;
}

async function findAccount(user: string | null, accounts: Accounts): Promise<Account> {
    const account = await accounts.find(user);
    if (account === null) {
        throw errors.notFound(`This machine has no account ${user ?? ''}`);
    }
    if (!account.own && !canRunAsOthers()) {
        throw fail.NOT_ROOT({ user: account.name });
    }
    return account;
}

function programOf({ command, script: text }: Job, script: PlacedScript | null, values: Values): Program {
    if (text !== null && script !== null) {
        const { file, args } = interpreterOf(text);
        return { file, args: [...args, script.path] };
    }
    const [file = '', ...args] = filledIn(command ?? [], values);
    return { file, args };
}

/** The values of the run, secret ones in plain text. */
async function openValues(
    ctx: Ctx,
    { parameters, secretParameters, parameterDefaults }: Job
): Promise<Values> {
    if (parameters === null) {
        return {};
    }
    const shown = JSON.parse(parameters) as ShownValues;
    const open = async (sealed: string | null): Promise<Values> =>
        sealed === null ? {} : (JSON.parse(await ctx.secrets.open(sealed)) as Values);
    const secret = { ...(await open(parameterDefaults)), ...(await open(secretParameters)) };
    return Object.fromEntries(
        Object.entries(shown).flatMap(([name, value]) => {
            const plain = typeof value === 'object' ? secret[name] : value;
            return plain === undefined ? [] : [[name, plain] as const];
        })
    );
}

async function run(
    job: Job,
    program: SandboxedProgram,
    account: Account,
    { ctx, output, signal }: ExecutionOptions
): Promise<RunResult> {
    const child = await spawn(ctx, job, program, account, signal);
    const readers = [new OutputReader(child.stdout, output), new OutputReader(child.stderr, output)];
    child.stdin.close().catch(() => undefined);
    const exit = await child.exited;
    // Read before the clean-up: a stop that is asked for after the program has ended did not stop it.
    const stopped = signal.aborted;
    const leftover = await endRemaining(child);
    await closeReaders(readers);
    return resultOf(job, exit, { stopped, leftover, usage: await child.usage() });
}

async function spawn(
    ctx: Ctx,
    job: Job,
    { file, args, cwd, env: own }: SandboxedProgram,
    account: Account,
    signal: AbortSignal
): Promise<Child> {
    const env =
        job.env === null ? {} : (JSON.parse(await ctx.secrets.open(job.env)) as Record<string, string>);
    return ctx.spawn(file, args, {
        cwd: cwd ?? job.cwd ?? (await findHome(account)),
        env: {
            HOME: account.home,
            USER: account.name,
            LOGNAME: account.name,
            SHELL: '/bin/sh',
            CRONJOB_TASK: String(job.taskId),
            CRONJOB_RUN: String(job.runId),
            ...env,
            ...own,
            [markVariable]: job.mark
        },
        signal,
        // Without a limit it is only measured.
        limits: { group: job.limits ?? {} },
        ...(job.user === null ? {} : { user: job.user }),
        ...(job.timeoutSeconds === null ? {} : { timeoutSeconds: job.timeoutSeconds })
    });
}

/** What is known of a run when its program has ended. */
interface Ending {
    /** Its end was asked for. */
    readonly stopped: boolean;
    /** Which processes could not be ended; null when all were. */
    readonly leftover: string | null;
    readonly usage: Usage | null;
}

function resultOf(job: Job, exit: Exit, { stopped, leftover, usage }: Ending): RunResult {
    const common = {
        status: null,
        exitCode: exit.code,
        signal: exit.signal,
        reason: leftover === null ? null : 'DOES_NOT_END',
        message: leftover,
        cpuSeconds: usage?.cpuSeconds ?? null,
        memoryPeakBytes: usage?.memoryPeakBytes ?? null
    };
    if (exit.timedOut) {
        return {
            ...common,
            state: 'timeout',
            reason: common.reason ?? 'TIMEOUT',
            message: leftover ?? tooLong(job)
        };
    }
    if (stopped) {
        return { ...common, state: 'stopped' };
    }
    // Also where the program itself went on: what it gave without that process cannot be trusted.
    if (exit.limit === 'memory') {
        return {
            ...common,
            state: 'failed',
            reason: common.reason ?? 'LIMIT_MEMORY',
            message:
                leftover ??
                `Its processes needed more than the ${job.limits?.memoryBytes ?? 0} bytes of memory that it may use`
        };
    }
    if (exit.code === 0) {
        return { ...common, state: 'succeeded' };
    }
    return {
        ...common,
        state: 'failed',
        reason: common.reason ?? (exit.code === null ? 'SIGNAL' : 'EXIT_CODE')
    };
}

/** Ends the processes that the program left behind. Resolves with a message when some cannot be ended. */
async function endRemaining(child: Child): Promise<string | null> {
    try {
        await child[Symbol.asyncDispose]();
        return null;
    } catch (error) {
        return messageOf(error);
    }
}

/** The home of the account, or `/` where it does not exist, as with many service accounts. */
async function findHome({ home }: Account): Promise<string> {
    const isFolder = await stat(home).then(
        (found) => found.isDirectory(),
        () => false
    );
    return isFolder ? home : '/';
}

/** Waits until the pipes have ended, but not longer than {@link pipeGraceMs}, and closes them. */
async function closeReaders(readers: readonly OutputReader[]): Promise<void> {
    const ended = new AbortController();
    await Promise.race([
        Promise.all(readers.map(({ done }) => done)),
        wait(pipeGraceMs, undefined, { ref: false, signal: ended.signal }).catch(() => undefined)
    ]);
    ended.abort();
    await Promise.all(readers.map((reader) => reader.close()));
}

function failureResult(error: unknown, ctx: Ctx, { runId }: Job): RunResult {
    if (isFailure(error)) {
        return { ...emptyResult, state: 'failed', reason: error.reason, message: error.message };
    }
    const { code, message } = error as NodeJS.ErrnoException;
    if (typeof code === 'string') {
        return { ...emptyResult, state: 'failed', reason: code, message: `The system refused: ${message}` };
    }
    ctx.log.error('A run could not be started', { run: runId, error: String(error) });
    return {
        ...emptyResult,
        state: 'failed',
        reason: 'INTERNAL',
        message: 'It could not be started; the log says why'
    };
}
