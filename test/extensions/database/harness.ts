/** The plugin in the test kit, with the files, programs, services and database servers of this machine. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Remote } from '@portico/sdk';
import { createTestHost, type TestAnswer, type TestHost, type Who } from '@portico/testing';

import database from '../../../extensions/database/src/index.ts';
import { freePort } from '../../support/ports.ts';
import { until as untilTrue } from '../../support/until.ts';
import type { Instance } from './instances.ts';

const all = ['read', 'query', 'operate', 'logs', 'write', 'secrets'];
/** `admin` may do everything; so may `tired`, whose session is not fresh. */
const people: Readonly<Record<string, Who>> = {
    admin: { username: 'admin', permissions: all },
    tired: { username: 'tired', permissions: all, fresh: false },
    operator: { username: 'operator', permissions: ['read', 'query', 'operate', 'logs'] },
    viewer: { username: 'viewer', permissions: ['read'] }
};

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
export type Answer = TestAnswer<any>;

type Partners = NonNullable<NonNullable<Parameters<typeof createTestHost>[1]>['partners']>;

/** A task that has ended. */
export interface EndedTask {
    readonly state: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into results of every shape
    readonly result: any;
    readonly error: { readonly code: number; readonly message: string } | null;
}

/** Ports that no other test and no outgoing connection is likely to take. */
export async function portRange(): Promise<{ from: number; to: number }> {
    const from = await freePort();
    return { from, to: from + 100 };
}

/** One plugin, and people who ask it. */
export class Harness {
    readonly host: TestHost;
    readonly dataFolder: string;

    private constructor(host: TestHost, dataFolder: string) {
        this.host = host;
        this.dataFolder = dataFolder;
    }

    /** @param patienceMs - how long the host waits for tasks, and before its stop for requests that are under way */
    static async start(
        settings: object = {},
        partners: Partners = {},
        patienceMs = 60_000
    ): Promise<Harness> {
        const dataFolder = mkdtempSync(join(tmpdir(), 'portico-database-'));
        // Servers run as accounts of their own.
        chmodSync(dataFolder, 0o711);
        const host = await createTestHost(database, {
            package: new URL('../../../extensions/database', import.meta.url),
            machine: 'real',
            settings: { dataFolder, ports: await portRange(), ...settings },
            partners,
            timing: { patienceMs }
        });
        return new Harness(host, dataFolder);
    }

    /** Waits for the end of a task. */
    async task({ status, data, text }: Pick<Answer, 'status' | 'data' | 'text'>): Promise<EndedTask> {
        if (status !== 202) {
            throw new Error(`${status} ${text}`);
        }
        return (await this.host.tasks.wait(data.id as number)) as EndedTask;
    }

    /** The plugin's contract, as another plugin calls it for a user. */
    contract<C>(who: string): Remote<C> {
        return this.host.contract<C>({ who: people[who] as Who });
    }

    ask(
        method: string,
        path: string,
        body?: object,
        { as = 'admin', ...headers }: Record<string, string> = {}
    ): Promise<Answer> {
        return this.host.as(people[as] as Who).ask(method, path, body, { headers });
    }

    /** Sends a file. */
    upload(path: string, text: string | Buffer): Promise<Answer> {
        const headers = { 'content-type': 'application/octet-stream' };
        return this.host.as(people['admin'] as Who).ask('POST', path, text, { headers });
    }

    /** Events of a stream. */
    events(path: string, as = 'admin'): ReturnType<ReturnType<TestHost['as']>['events']> {
        return this.host.as(people[as] as Who).events(path);
    }

    /** Registers a server, and returns its path. */
    async register({ kind, port, username, password }: Instance, more: object = {}): Promise<string> {
        const made = await this.ask('POST', '/servers', {
            name: `${kind} ${port}`,
            kind,
            mode: 'registered',
            host: '127.0.0.1',
            port,
            username,
            password,
            ...more
        });
        if (made.status !== 201) {
            throw new Error(`${made.status} ${made.text}`);
        }
        return `/servers/${made.data.id}`;
    }

    async close(): Promise<void> {
        await this.host.close();
        rmSync(this.dataFolder, { recursive: true, force: true });
    }
}

/** Asks again and again until there is something. */
export function until<T>(what: string, look: () => Promise<T | null | undefined | false>): Promise<T> {
    return untilTrue(look, what);
}
