/** The plugin behind the real boundary, host, gateway and database, with real servers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import type { Remote } from '@portico/sdk';
import { partnerProxy } from '@portico/sdk/host';

import type { Caller } from '../../../core/src/platform/call.ts';
import type { Generation } from '../../../core/src/plugins/runtime/generation/generation.ts';
import database from '../../../extensions/database/src/index.ts';
import type { Manifest } from '../../../registry/src/manifest.ts';
import { type Asked, createPluginRig, type PluginRig } from '../../support/plugins/host.ts';
import type { Instance } from './instances.ts';

const { portico: manifest } = JSON.parse(
    readFileSync(new URL('../../../extensions/database/package.json', import.meta.url), 'utf8')
) as { portico: Manifest };
const verbs = ['read', 'query', 'operate', 'logs', 'write', 'secrets'];

/** A task that has ended. */
export interface EndedTask {
    readonly state: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into results of every shape
    readonly result: any;
    readonly error: { readonly code: number; readonly message: string } | null;
}

/** One plugin, and people who ask it. */
export class Harness {
    readonly rig: PluginRig;
    generation!: Generation;

    readonly callers = new Map<string, Caller>();

    private constructor(rig: PluginRig) {
        this.rig = rig;
    }

    static async start(settings: object = {}): Promise<Harness> {
        const rig = await createPluginRig();
        const harness = new Harness(rig);
        const all = verbs.map((verb) => `database:${verb}`);
        harness.callers.set('admin', rig.user('admin', all, { fresh: true }));
        rig.user('tired', all, { fresh: false });
        rig.user(
            'operator',
            ['read', 'query', 'operate', 'logs'].map((verb) => `database:${verb}`)
        );
        rig.user('viewer', ['database:read']);
        await harness.begin(settings);
        return harness;
    }

    /** A new generation on the same data. */
    async begin(settings: object = {}): Promise<void> {
        this.generation = await this.rig.run(database, {
            name: 'database',
            manifest,
            capabilities: manifest.capabilities ?? {},
            settings: { dataFolder: this.dataFolder, ...settings },
            dataDir: join(this.rig.root, 'data', 'database')
        });
    }

    get dataFolder(): string {
        return join(this.rig.root, 'databases');
    }

    /** Waits for the end of a task. */
    async task({ status, data, text }: Pick<Asked, 'status' | 'data' | 'text'>): Promise<EndedTask> {
        if (status !== 202) {
            throw new Error(`${status} ${text}`);
        }
        return until('the task', async () => {
            const found = this.rig.tasks.get(data.id as number, this.callers.get('admin') as Caller);
            return ['queued', 'running'].includes(found.state) ? null : (found as EndedTask);
        });
    }

    /** The plugin's contract, as another plugin calls it for a user. */
    contract<C>(who: string): Remote<C> {
        const caller = this.callers.get(who) as Caller;
        const proxy = partnerProxy('database', ({ method, input }) =>
            this.rig.host.contracts.call('database', {
                method,
                input,
                plugin: 'test',
                held: { caller, ip: null, requestId: `call-${method}` },
                signal: null
            })
        );
        return proxy as Remote<C>; // the type of the contract is the test's to say
    }

    ask(
        method: string,
        path: string,
        body?: unknown,
        { as = 'admin', ...headers }: Record<string, string> = {}
    ): Promise<Asked> {
        return this.rig.ask(as, method, `/api/plugins/database${path}`, body, headers);
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
        await this.rig.close();
    }
}

/** Asks again and again until there is something. */
export async function until<T>(what: string, look: () => Promise<T | null | undefined | false>): Promise<T> {
    const limit = performance.now() + 20_000;
    while (performance.now() < limit) {
        const found = await look();
        if (found !== null && found !== undefined && found !== false) {
            return found;
        }
        await wait(20);
    }
    throw new Error(`Waited in vain for ${what}`);
}
