/** A module in a process of its own, to compare with: it listens and says where. */
import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Child<T> {
    readonly pid: number;
    /** The message that it sent when it was ready. */
    readonly said: T;
    /** Milliseconds from its start until then. */
    readonly ready: number;
    close(): Promise<void>;
}

/** Starts a module of this folder and sends it a message. The module answers with a message when it is ready. */
export function startChild<T>(
    module: string,
    message: Serializable,
    node: readonly string[] = []
): Promise<Child<T>> {
    const began = performance.now();
    const child: ChildProcess = fork(fileURLToPath(new URL(module, import.meta.url)), {
        execArgv: ['--conditions=portico-source', '--disable-warning=ExperimentalWarning', ...node],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc']
    });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.send(message);
    return new Promise((resolve, reject) => {
        child.once('error', reject);
        child.once('exit', (code) => reject(new Error(`${module} ended with ${code}`)));
        child.once('message', (said) =>
            resolve({
                pid: child.pid ?? 0,
                said: said as T,
                ready: performance.now() - began,
                async close() {
                    child.kill('SIGKILL');
                    await ended;
                }
            })
        );
    });
}

/** In the child: takes the message, and reports that it is ready. */
export function asChild<M>(start: (message: M) => Promise<unknown>): void {
    process.once('message', (message) => {
        start(message as M).then(
            (said) => process.send?.(said),
            (error: unknown) => {
                console.error(error);
                process.exit(1);
            }
        );
    });
    process.once('disconnect', () => process.exit(0));
}
