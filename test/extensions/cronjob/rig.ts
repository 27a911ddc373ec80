/** The plugin in the test kit, with the real programs and files of this machine. Only its clock is set by the test. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

import {
    createTestHost,
    type TestAnswer,
    type TestClient,
    type TestHost,
    type TestHostOptions,
    type Who
} from '@portico/testing';

import { defineCronjob } from '../../../extensions/cronjob/src/index.ts';
import { until } from '../../support/until.ts';

/** Why tests that run as another account cannot run here; undefined where they can. */
export const notRoot = process.getuid?.() === 0 ? undefined : 'only root runs programs as others';

/** `admin` may do everything; so may `tired`, whose session is not fresh. */
const people = {
    admin: { username: 'admin', permissions: ['read', 'output', 'run', 'write'] },
    tired: { username: 'tired', permissions: ['read', 'output', 'run', 'write'], fresh: false },
    operator: { username: 'operator', permissions: ['read', 'output', 'run'] },
    viewer: { username: 'viewer', permissions: ['read'] }
} as const satisfies Readonly<Record<string, Who>>;

export type Person = keyof typeof people;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
type Answer = TestAnswer<any>;
type Notification = Omit<TestHost['notifications'][number], 'severity' | 'text'>;

/** What the test sets of the machine. */
interface Time {
    /** Milliseconds; null: the machine's own clock. */
    at: number | null;
    boot: string;
}

export class CronjobRig {
    readonly host: TestHost;
    readonly time: Time;

    constructor(host: TestHost, time: Time) {
        this.host = host;
        this.time = time;
    }

    get folder(): string {
        return this.host.dataDir;
    }

    get notified(): readonly Notification[] {
        return this.host.notifications.map(({ severity: _severity, text: _text, ...rest }) => rest);
    }

    as(who: Person = 'admin'): TestClient {
        return this.host.as(people[who]);
    }

    ask(
        method: string,
        path: string,
        body?: object,
        { as = 'admin', headers = {} }: { as?: Person; headers?: Record<string, string> } = {}
    ): Promise<Answer> {
        return this.as(as).ask(method, path, body, { headers });
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
    async finish(taskId: number): Promise<Answer['data']> {
        const { data } = await this.ask('POST', `/tasks/${taskId}/run`);
        return this.over(data.id as number);
    }

    /** Waits until a run is over. */
    over(runId: number): Promise<Answer['data']> {
        return until(async () => {
            const { data } = await this.ask('GET', `/runs/${runId}`);
            return data.finishedAt === null ? null : data;
        }, `run ${runId} to end`);
    }

    /** Runs of a task, oldest first. */
    async runs(taskId: number): Promise<Answer['data'][]> {
        return (await this.ask('GET', `/tasks/${taskId}/runs?limit=500`)).data.reverse();
    }

    close(): Promise<void> {
        return this.host.close();
    }
}

/** Starts the plugin. @param at - what its clock says, which then stands still; by default it follows the machine's own */
export async function createCronjobRig({
    at,
    settings = {}
}: { readonly at?: string } & Pick<TestHostOptions, 'settings'> = {}): Promise<CronjobRig> {
    const time: Time = { at: at === undefined ? null : Date.parse(at), boot: 'boot-1' };
    const definition = defineCronjob({
        now: () => time.at ?? Date.now(),
        pollMs: at === undefined ? 20_000 : 20,
        boot: async () => time.boot
    });
    const host = await createTestHost(definition, {
        package: new URL('../../../extensions/cronjob', import.meta.url),
        machine: 'real',
        settings,
        timing: { patienceMs: 60_000 }
    });
    return new CronjobRig(host, time);
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
