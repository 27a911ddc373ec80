/** Runs a command in a container to its end. */
import { errors } from '@portico/sdk';

import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { readFrames } from '../streams/frames.ts';

/** A command that runs in a container, and its limits. */
export interface ExecInput {
    readonly command: readonly string[];
    readonly user?: string | undefined;
    readonly workdir?: string | undefined;
    readonly env: Readonly<Record<string, string>>;
    readonly timeoutSeconds: number;
}

/** What a command in a container gave back. */
export interface ExecOutcome {
    /** Null: the time was over before the command was. */
    readonly exitCode: number | null;
    readonly stdout: string;
    readonly stderr: string;
    /** Output was left out, or is not whole because the time was over. */
    readonly truncated: boolean;
}

const mostBytes = 1_048_576;

/** Runs a command. @throws NOT_FOUND 40400, IN_USE 40901 for a container that does not run */
export async function execute(
    { engine, inventory }: { readonly engine: Engine; readonly inventory: Inventory },
    id: string,
    input: ExecInput,
    signal: AbortSignal
): Promise<ExecOutcome> {
    const container = await inventory.container(id);
    if (!container.State.Running) {
        throw errors.inUse(container.Name.replace(/^\//, ''), 'The container does not run: start it first');
    }
    if (container.State.Paused) {
        throw errors.inUse(container.Name.replace(/^\//, ''), 'The container is paused: unpause it first');
    }
    const { Id: exec } = await engine.call<{ Id: string }>('POST', `/containers/${container.Id}/exec`, {
        body: {
            AttachStdout: true,
            AttachStderr: true,
            Cmd: input.command,
            Env: Object.entries(input.env).map(([name, value]) => `${name}=${value}`),
            ...(input.user === undefined ? {} : { User: input.user }),
            ...(input.workdir === undefined ? {} : { WorkingDir: input.workdir })
        }
    });
    const output = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    const bytes = { stdout: 0, stderr: 0 };
    const time = AbortSignal.timeout(input.timeoutSeconds * 1_000);
    let truncated = false;
    try {
        const response = await engine.open('POST', `/exec/${exec}/start`, {
            body: { Detach: false, Tty: false },
            signal: AbortSignal.any([signal, time]),
            patienceMs: 0
        });
        for await (const { stream, bytes: chunk } of readFrames(response, false)) {
            const kept = chunk.subarray(0, mostBytes - bytes[stream]);
            bytes[stream] += kept.length;
            truncated ||= kept.length < chunk.length;
            output[stream].push(Buffer.from(kept));
        }
    } catch (error) {
        signal.throwIfAborted();
        if (!time.aborted) {
            throw error;
        }
    }
    // An answer that was cut by its signal may end without an error.
    signal.throwIfAborted();
    truncated ||= time.aborted;
    const { ExitCode: exitCode, Running: running } = await engine.call<{
        ExitCode: number | null;
        Running: boolean;
    }>('GET', `/exec/${exec}/json`);
    return {
        exitCode: running ? null : exitCode,
        stdout: Buffer.concat(output.stdout).toString(),
        stderr: Buffer.concat(output.stderr).toString(),
        truncated
    };
}
