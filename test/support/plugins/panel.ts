/** What tests of installs and swaps need beside a panel: ends of tasks, and hashes of files. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import type { Answer, Client } from '../panel/client.ts';
import { until } from '../until.ts';

/** How a task ended, as the API shows it. */
export interface Ended {
    readonly id: number;
    readonly kind: string;
    readonly state: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into results of every shape
    readonly result: any;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
    readonly error: any;
}

const patienceMs = 120_000;

/** Waits for the task that an answer accepted. @throws Error when it was not accepted */
export async function ended(
    client: Client,
    accepted: Pick<Answer, 'status' | 'data' | 'text'>
): Promise<Ended> {
    if (accepted.status !== 202) {
        throw new Error(`Not accepted: ${accepted.status} ${accepted.text}`);
    }
    return until(
        async () => {
            const { data } = await client.get(`/api/tasks/${accepted.data.id}`);
            return !['queued', 'running'].includes(data.state as string) && (data as Ended);
        },
        'the task to end',
        patienceMs
    );
}

/** The hash of every file below a folder, except SQLite's shared memory and empty logs. */
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
