/** Hardware that only programs can ask, and slowly: drives and graphics processors. */
import { Mutex } from '@portico/sdk';

import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { askDrives, type Drive, listDrives } from './drives.ts';
import { askGpus, type Gpu, hasGpu } from './gpus.ts';

/** A part that cannot be looked at without a program. */
export interface MissingTool {
    readonly part: 'drives' | 'gpus';
    readonly tool: string;
    /** The command that installs it. */
    readonly install: string;
}

/** Asks every `slowSeconds`, and keeps the last answers. */
export class Hardware {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #mutex = new Mutex();
    readonly #end = new AbortController();
    #drives: readonly Drive[] = [];
    #gpus: readonly Gpu[] = [];
    #missing: readonly MissingTool[] = [];
    #askedAt: number | null = null;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    get drives(): readonly Drive[] {
        return this.#drives;
    }

    get gpus(): readonly Gpu[] {
        return this.#gpus;
    }

    /** Programs that are not installed, though there is hardware that they ask. */
    get missing(): readonly MissingTool[] {
        return this.#missing;
    }

    /** Asks everything anew when the last answers are old. */
    async refresh(): Promise<void> {
        await this.#mutex.run(async () => {
            const now = this.#machine.monotonic();
            if (this.#askedAt !== null && now - this.#askedAt < this.#ctx.settings.slowSeconds * 1000) {
                return;
            }
            this.#askedAt = now;
            await this.#ask(this.#end.signal).catch((error: unknown) => {
                if (!this.#end.signal.aborted) {
                    this.#ctx.log.warn('Drives and graphics processors could not be asked', {
                        error: String(error)
                    });
                }
            });
        });
    }

    /** Resolves when no program runs any more. */
    async stop(): Promise<void> {
        this.#end.abort();
        await this.#mutex.run(async () => undefined);
    }

    async #ask(signal: AbortSignal): Promise<void> {
        const drives = await askDrives(this.#ctx, this.#machine, this.#drives, signal);
        this.#drives = drives ?? listDrives(this.#machine);
        const gpus = hasGpu(this.#machine) ? await askGpus(this.#ctx, signal) : [];
        this.#gpus = gpus ?? [];
        this.#missing = [
            ...(drives === null
                ? [
                      {
                          part: 'drives' as const,
                          tool: 'smartctl',
                          install: 'apt-get install smartmontools'
                      }
                  ]
                : []),
            ...(gpus === null
                ? [{ part: 'gpus' as const, tool: 'nvidia-smi', install: 'apt-get install nvidia-smi' }]
                : [])
        ];
    }
}
