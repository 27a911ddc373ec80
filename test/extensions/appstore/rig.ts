/** The plugin in the test kit, with a publisher, and where a test needs it the real `container` on a real engine. */
import { spawnSync } from 'node:child_process';

import { type Call, createFailure, type Remote } from '@portico/sdk';
import { createTestHost, type TestAnswer, type TestHost, type Who } from '@portico/testing';

import { defineAppstore } from '../../../extensions/appstore/src/index.ts';
import { type Machine, realMachine } from '../../../extensions/appstore/src/machine.ts';
import type { ContainerContract } from '../../../extensions/container/src/contract.ts';
import { ContainerRig } from '../container/support/rig.ts';
import { Publisher } from './publisher.ts';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are looked into by the tests, field by field
export type Data = any;

/** A task that has ended. */
export interface EndedTask {
    readonly state: string;
    readonly result: Data;
    readonly error: { readonly code: number; readonly message: string } | null;
}

/** Much for a busy machine; no test sits it out. */
const healthSeconds = 45;
/** The name under which the publisher's server is found. */
export const publisherHost = 'apps.example';

/** The clock of a test. */
export class TestMachine implements Machine {
    readonly architecture = realMachine.architecture;
    readonly freePort = realMachine.freePort;
    readonly isFree = realMachine.isFree;
    readonly wait = realMachine.wait;
    offsetMs = 0;
    minute = 180;
    now = (): number => Date.now() + this.offsetMs;
    minuteOfDay = (): number => this.minute;
}

type Fake = Readonly<Record<string, (input: never, call: Call) => unknown>>;

const noEngine = async (): Promise<never> => {
    throw createFailure({ code: 50350, reason: 'ENGINE_DOWN', message: 'No engine', data: null });
};
/** `container` on a machine without an engine. */
const withoutEngine: Fake = { engine: noEngine, plan: noEngine, stack: noEngine };

type Method = (input: never, options: object) => Promise<unknown>;

type Work = (signal: AbortSignal) => Promise<void>;

/** Where a test cuts the plugin: behind a method of `container` that has done its work. */
export class Cut {
    #next: { readonly method: string; readonly work: Work } | null = null;

    /** The next call of the method does its work, and is never answered. Resolves when it was. */
    after(method: string): Promise<void> {
        const reached = Promise.withResolvers<void>();
        this.behind(method, async (signal) => {
            reached.resolve();
            await new Promise((_resolve, reject) => {
                signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
            });
        });
        return reached.promise;
    }

    /** The next call of the method is answered after this work, too. */
    behind(method: string, work: Work): void {
        this.#next = { method, work };
    }

    async pass(method: string, signal: AbortSignal): Promise<void> {
        if (this.#next?.method === method) {
            const { work } = this.#next;
            this.#next = null;
            await work(signal);
        }
    }
}

/** `container` itself, for the person that this plugin acts for. */
function realContainer(container: ContainerRig, cut: Cut): Fake {
    const remote = (actor: Call['actor']): Remote<ContainerContract> =>
        container.host.contract<ContainerContract>({
            plugin: 'appstore',
            ...(actor === null
                ? {}
                : {
                      who: {
                          username: actor.username ?? 'token',
                          permissions: actor.role === 'admin' ? ['read', 'control', 'write'] : ['read']
                      }
                  })
        });
    const names = [
        ...['engine', 'plan', 'apply', 'stack', 'control', 'remove', 'snapshot', 'restore', 'dropSnapshot'],
        ...['pull', 'rollback']
    ];
    return Object.fromEntries(
        names.map((name) => [
            name,
            async (input: never, { actor, signal }: Call) => {
                // All methods of this list take one plain input.
                const methods = remote(actor) as unknown as Record<string, Method>;
                // A partner's answer is a promise and a series in one, so it is awaited here.
                const result = await methods[name]?.(input, { signal });
                await cut.pass(name, signal);
                return result;
            }
        ])
    );
}

/** What a rig is made of. */
export interface RigOptions {
    readonly settings?: object;
    readonly engine?: boolean;
    readonly partners?: Readonly<Record<string, Fake>>;
}

/** One plugin and one publisher. */
export class AppstoreRig implements AsyncDisposable {
    readonly host: TestHost;
    readonly publisher: Publisher;
    readonly machine: TestMachine;
    readonly container: ContainerRig | null;
    readonly cut: Cut;

    private constructor(parts: Pick<AppstoreRig, 'host' | 'publisher' | 'machine' | 'container' | 'cut'>) {
        this.host = parts.host;
        this.publisher = parts.publisher;
        this.machine = parts.machine;
        this.container = parts.container;
        this.cut = parts.cut;
    }

    static async start({
        settings = {},
        engine = false,
        partners = {}
    }: RigOptions = {}): Promise<AppstoreRig> {
        const publisher = await Publisher.start();
        const container = engine ? await ContainerRig.start() : null;
        const machine = new TestMachine();
        const cut = new Cut();
        const host = await createTestHost(defineAppstore(machine), {
            package: new URL('../../../extensions/appstore/package.json', import.meta.url),
            machine: 'real',
            settings: { healthSeconds, ...settings },
            partners: {
                container: container === null ? withoutEngine : realContainer(container, cut),
                ...partners
            },
            grants: {
                network: ['*', '127.0.0.1'],
                exec: ['git'],
                hosts: 'own',
                taps: ['export.collect', 'import.restore']
            },
            timing: { patienceMs: 60_000 }
        });
        const rig = new AppstoreRig({ host, publisher, machine, container, cut });
        rig.serve(publisherHost, publisher);
        if (container !== null) {
            rig.#probeInNamespace();
        }
        return rig;
    }

    /** Leads a name of the outside to a publisher's server. */
    serve(name: string, { port }: Publisher): void {
        this.host.network.answer(name, async ({ url }) => {
            const { pathname } = new URL(url);
            const answer = await fetch(`http://127.0.0.1:${port}${pathname}`, { redirect: 'manual' });
            const { status, headers } = answer;
            return new Response(status === 200 ? await answer.arrayBuffer() : null, { status, headers });
        });
    }

    ask(method: string, path: string, body?: object, who: Who = 'admin'): Promise<TestAnswer<Data>> {
        return this.host.as(who).ask<Data>(method, path, body);
    }

    get(path: string): Promise<TestAnswer<Data>> {
        return this.ask('GET', path);
    }

    post(path: string, body: object = {}): Promise<TestAnswer<Data>> {
        return this.ask('POST', path, body);
    }

    put(path: string, body: object): Promise<TestAnswer<Data>> {
        return this.ask('PUT', path, body);
    }

    /** Sends what begins a task, and waits for its end. */
    async run(path: string, body: object = {}, method = 'POST', who: Who = 'admin'): Promise<EndedTask> {
        const { status, data, text } = await this.ask(method, path, body, who);
        if (status !== 202) {
            throw new Error(`${status} ${text}`);
        }
        return (await this.host.tasks.wait(data.id as number)) as EndedTask;
    }

    /** As {@link run}, and it must succeed. Gives the result. */
    async make(path: string, body: object = {}, method = 'POST'): Promise<Data> {
        const { state, result, error } = await this.run(path, body, method);
        if (state !== 'succeeded') {
            throw new Error(`${state} ${JSON.stringify(error)}`);
        }
        return result;
    }

    /** Adds the publisher as a source, and gives the answer. */
    addSource(name = 'main', more: object = {}): Promise<TestAnswer<Data>> {
        return this.post('/sources', {
            name,
            kind: 'portico',
            url: `https://${publisherHost}`,
            publicKey: this.publisher.key(),
            ...more
        });
    }

    /** Syncs a source, which must succeed. */
    sync(name = 'main'): Promise<Data> {
        return this.make(`/sources/${name}/sync`);
    }

    /** Installs an app with the consent of its plan. */
    async install(body: object): Promise<EndedTask> {
        const { data, text, status } = await this.post('/plan', body);
        if (status !== 200) {
            throw new Error(text);
        }
        return this.run('/installed', { ...body, consent: data.consent });
    }

    /** What the app answers at its address, from inside the namespace of the engine. */
    answer(address: string, path = '/'): { status: number; body: string } | null {
        const pid = this.container?.engine.pid ?? 0;
        const { stdout, stderr } = spawnSync(
            'nsenter',
            [
                `--net=/proc/${pid}/ns/net`,
                'busybox',
                'wget',
                '-q',
                '-S',
                '-O',
                '-',
                `http://${address}${path}`
            ],
            { encoding: 'utf8', timeout: 5_000 }
        );
        const [, status] = /HTTP\/1\.\d (\d{3})/.exec(stderr) ?? [];
        return status === undefined ? null : { status: Number(status), body: stdout };
    }

    /** Puts an image into the engine's registry, and gives its digest. */
    async pushImage(name: string, mark: string): Promise<string> {
        const { container } = this;
        await container?.engine.importImage(name, mark);
        await container?.make('/images/push', { image: name });
        const { data } = (await container?.get(`/images/${encodeURIComponent(name)}`)) ?? {};
        const [digest = ''] = (data.digests as string[]).filter((each) =>
            each.startsWith(name.replace(/:[^:]*$/, ''))
        );
        return digest.split('@')[1] ?? '';
    }

    async close(): Promise<void> {
        await this.host.close();
        await this.container?.close();
        await this.publisher.close();
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    /**
     * Addresses of apps are those of the engine's own namespace: the kit's hosts ask there. An app of a test that answers something else than a
     * page goes on to do so: the clock goes to the end of its time.
     */
    #probeInNamespace(): void {
        this.host.hosts.probes.get = (address) => {
            const answer = this.answer(address);
            this.machine.offsetMs += answer === null || answer.status === 200 ? 0 : healthSeconds * 1_000;
            return answer === null ? undefined : { status: answer.status, ms: 1, body: answer.body };
        };
    }
}
