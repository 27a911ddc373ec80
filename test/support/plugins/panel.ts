/** A panel whose plugins come from a registry of the test, and what tests of installs and swaps ask of it. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import type { Answer, Client } from '../panel/client.ts';

/** The end of a task, as the API shows it. */
export interface Ended {
    readonly id: number;
    readonly kind: string;
    readonly state: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into results of every shape
    readonly result: any;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
    readonly error: any;
}

const patienceMs = 60_000;

/** Waits for the task that an answer accepted. @throws Error when it was not accepted */
export async function ended(client: Client, accepted: Answer): Promise<Ended> {
    if (accepted.status !== 202) {
        throw new Error(`Not accepted: ${accepted.status} ${accepted.text}`);
    }
    const until = performance.now() + patienceMs;
    for (;;) {
        const { data } = await client.get(`/api/tasks/${accepted.data.id}`);
        if (!['queued', 'running'].includes(data.state as string)) {
            return data as Ended;
        }
        if (performance.now() > until) {
            throw new Error(`The task has not ended: ${JSON.stringify(data)}`);
        }
        await wait(20);
    }
}

/** Every file below a folder with the hash of its content; shared memory of SQLite does not count, nor a log that is empty. */
export function hashesOf(folder: string): Readonly<Record<string, string>> {
    const walk = (path: string): [string, string][] =>
        readdirSync(join(folder, path))
            .sort()
            .flatMap((name): [string, string][] => {
                const child = path === '' ? name : `${path}/${name}`;
                const full = join(folder, child);
                const stat = statSync(full);
                if (stat.isDirectory()) {
                    return walk(child);
                }
                return name.endsWith('-shm') || (name.endsWith('-wal') && stat.size === 0)
                    ? []
                    : [[child, createHash('sha256').update(readFileSync(full)).digest('hex')]];
            });
    return Object.fromEntries(walk(''));
}
