/** The plugin behind the real boundary, host, gateway and database, with real processes; only the clock is turned by hand. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import type { Generation } from '../../../core/src/plugins/runtime/generation.ts';
import { defineCronjob } from '../../../extensions/cronjob/src/index.ts';
import type { Machine } from '../../../extensions/cronjob/src/machine.ts';
import type { Manifest } from '../../../registry/src/manifest.ts';
import { type Asked, createPluginRig, type PluginRig } from '../../support/plugins/host.ts';

const { portico: manifest } = JSON.parse(
    readFileSync(new URL('../../../extensions/cronjob/package.json', import.meta.url), 'utf8')
) as { portico: Manifest };

/** Why tests that run as somebody else cannot run here; undefined where they can. */
export const notRoot = process.getuid?.() === 0 ? undefined : 'only root runs programs as others';

export class Harness {
    readonly rig: PluginRig;
    generation!: Generation;
    /** Milliseconds; null: the machine's own clock. */
    at: number | null;
    boot = 'boot-1';
    readonly #clock: { now(): number };

    private constructor(rig: PluginRig, clock: { now(): number }, at: number | null) {
        this.rig = rig;
        this.at = at;
        this.#clock = clock;
    }

    static async start({
        at = null,
        settings = {}
    }: { at?: string | null; settings?: object } = {}): Promise<Harness> {
        const time: { harness: Harness | null } = { harness: null };
        const clock = { now: () => time.harness?.at ?? Date.now() };
        const rig = await createPluginRig({ clock });
        const harness = (time.harness = new Harness(rig, clock, at === null ? null : Date.parse(at)));
        const all = ['read', 'output', 'run', 'write'].map((verb) => `cronjob:${verb}`);
        rig.user('admin', all, { fresh: true });
        rig.user('tired', all, { fresh: false });
        rig.user(
            'operator',
            all.filter((permission) => permission !== 'cronjob:write')
        );
        rig.user('viewer', ['cronjob:read']);
        await harness.begin(settings);
        return harness;
    }

    /** A new generation on the same data. */
    async begin(settings: object = {}): Promise<void> {
        const machine: Machine = {
            now: () => this.#clock.now(),
            pollMs: this.at === null ? 20_000 : 20,
            boot: async () => this.boot
        };
        this.generation = await this.rig.run(defineCronjob(machine), {
            name: 'cronjob',
            manifest,
            capabilities: manifest.capabilities ?? {},
            settings: settings as Record<string, unknown>,
            dataDir: this.folder
        });
    }

    get folder(): string {
        return join(this.rig.root, 'data', 'cronjob');
    }

    async ask(
        method: string,
        path: string,
        body?: unknown,
        { as = 'admin', ...headers }: Record<string, string> = {}
    ): Promise<Asked> {
        return this.rig.ask(as, method, `/api/plugins/cronjob${path}`, body, headers);
    }

    /** Makes a task that no clock starts soon. */
    async task(task: object): Promise<number> {
        const made = await this.ask('POST', '/tasks', {
            name: 'task',
            schedule: '0 0 1 1 *',
            timezone: 'UTC',
            ...task
        });
        if (made.status !== 201) {
            throw new Error(`${made.status} ${made.text}`);
        }
        return made.data.id as number;
    }

    /** Runs a task and waits for the end. */
    async finish(taskId: number): Promise<Asked['data']> {
        const { data } = await this.ask('POST', `/tasks/${taskId}/run`);
        return this.over(data.id as number);
    }

    /** Waits until a run is over. */
    async over(runId: number): Promise<Asked['data']> {
        return until(`run ${runId} to end`, async () => {
            const { data } = await this.ask('GET', `/runs/${runId}`);
            return data.finishedAt === null ? null : data;
        });
    }

    /** Runs of a task, oldest first. */
    async runs(taskId: number): Promise<Asked['data'][]> {
        return (await this.ask('GET', `/tasks/${taskId}/runs?limit=500`)).data.reverse();
    }

    async close(): Promise<void> {
        await this.rig.close();
    }
}

/** Asks again and again until there is something. */
export async function until<T>(what: string, look: () => Promise<T | null | undefined | false>): Promise<T> {
    const end = performance.now() + 20_000;
    while (performance.now() < end) {
        const found = await look();
        if (found !== null && found !== undefined && found !== false) {
            return found;
        }
        await wait(15);
    }
    throw new Error(`Waited in vain for ${what}`);
}

/** Whether a process is there and no zombie. */
export function lives(pid: number): boolean {
    return (
        existsSync(`/proc/${pid}/stat`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    );
}

/** Processes whose environment has a text. */
export function processesWith(text: string): number[] {
    return readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .filter((pid) => {
            try {
                return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(text) && lives(pid);
            } catch {
                return false;
            }
        });
}
