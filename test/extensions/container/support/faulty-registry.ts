/** A registry beside the real one of an engine that spoils its answers, as `faulty-registry.mjs` says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { faultyRegistry, registryAddress, type TestEngine } from '../engines.ts';

const script = fileURLToPath(new URL('faulty-registry.mjs', import.meta.url));

/** One registry, a process of its own at {@link faultyRegistry}. */
export class FaultyRegistry implements AsyncDisposable {
    readonly #child: ChildProcess;

    private constructor(child: ChildProcess) {
        this.#child = child;
    }

    static async start({ pid }: TestEngine): Promise<FaultyRegistry> {
        const ports = [registryAddress, faultyRegistry].map((address) => address.split(':')[1] ?? '');
        const child = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, process.execPath, script, ...ports], {
            stdio: ['ignore', 'pipe', 'inherit']
        });
        await once(child.stdout, 'data');
        return new FaultyRegistry(child);
    }

    /** Makes it answer nothing, until {@link FaultyRegistry.resume}. */
    pause(): void {
        this.#child.kill('SIGSTOP');
    }

    resume(): void {
        this.#child.kill('SIGCONT');
    }

    async [Symbol.asyncDispose](): Promise<void> {
        if (this.#child.exitCode === null && this.#child.signalCode === null) {
            const exited = once(this.#child, 'exit');
            this.#child.kill('SIGKILL');
            await exited;
        }
    }
}
