/** Runs a program to its end. This command runs without a panel, so no context runs programs for it. */
import { spawn } from 'node:child_process';

/** What a program gave. */
export interface ProgramResult {
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
}

/** How a program runs. */
export interface ProgramOptions {
    readonly cwd?: string;
    /** Beside PATH and LANG. */
    readonly env?: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
}

/** @throws Error when it is not installed; the signal's reason */
export function run(
    file: string,
    args: readonly string[],
    { cwd, env, signal }: ProgramOptions
): Promise<ProgramResult> {
    signal.throwIfAborted();
    const child = spawn(file, args, {
        cwd,
        env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', ...env },
        stdio: ['ignore', 'pipe', 'pipe']
    });
    const end = (): void => void child.kill('SIGINT');
    signal.addEventListener('abort', end, { once: true });
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
        child[name].setEncoding('utf8').on('data', (text: string) => (texts[name] += text));
    }
    return new Promise((resolve, reject) => {
        child.once('error', (error: NodeJS.ErrnoException) =>
            reject(error.code === 'ENOENT' ? new Error(`The program ${file} is not installed`) : error)
        );
        child.once('close', (code) => {
            signal.removeEventListener('abort', end);
            if (signal.aborted) {
                reject(signal.reason as Error);
            } else {
                resolve({ code, ...texts });
            }
        });
    });
}
