/** The plugin in the test kit, with a server of models of the test's own behind its real clients. Only its clock is set by the test. */
import {
    createTestHost,
    type TestAnswer,
    type TestClient,
    type TestHost,
    type TestHostOptions,
    type Who
} from '@portico/testing';

import { defineAi } from '../../../extensions/ai/src/index.ts';
import { ModelServer } from '../../support/servers/model.ts';

/** `admin` may do everything; `olga` and `oscar` ask; `viewer` looks. */
const people = {
    admin: { username: 'admin', role: 'admin' },
    olga: { username: 'olga', role: 'operator' },
    oscar: { username: 'oscar', role: 'operator' },
    viewer: { username: 'viewer', role: 'viewer' }
} as const satisfies Readonly<Record<string, Who>>;

export type Person = keyof typeof people;

// Tests look into answers of every shape.
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
export type Any = any;
export type Answer = TestAnswer<Any>;
export interface Event {
    readonly event?: string;
    readonly data: Any;
}

/** What the rig is made with. */
export interface RigOptions extends Pick<TestHostOptions, 'settings'> {
    /** Milliseconds; default: the machine's clock. */
    readonly now?: number;
    readonly patienceMs?: number;
    /** Of the first provider. */
    readonly type?: 'openai' | 'anthropic';
    readonly provider?: object | null;
}

export class AiRig {
    readonly host: TestHost;
    readonly model: ModelServer;
    readonly time: { at: number | null };

    constructor(host: TestHost, model: ModelServer, time: { at: number | null }) {
        this.host = host;
        this.model = model;
        this.time = time;
    }

    as(who: Person = 'olga'): TestClient {
        return this.host.as(people[who]);
    }

    ask(method: string, path: string, body?: object, as: Person = 'olga'): Promise<Answer> {
        return this.as(as).ask(method, path, body);
    }

    /** Sets a provider up that leads to the server of the test. */
    async provider(given: object = {}): Promise<Any> {
        const made = await this.ask(
            'POST',
            '/providers',
            {
                name: 'Test',
                baseUrl: 'http://model.test/v1',
                model: 'model-large',
                apiKey: 'key-of-test',
                ...given
            },
            'admin'
        );
        if (made.status !== 201) {
            throw new Error(`${made.status} ${made.text}`);
        }
        return made.data;
    }

    async conversation(as: Person = 'olga', given: object = {}): Promise<number> {
        return (await this.ask('POST', '/conversations', given, as)).data.id as number;
    }

    /** Asks, and reads all events of the answer. */
    async say(id: number, text: string, as: Person = 'olga', more: object = {}): Promise<Event[]> {
        return this.stream(`/conversations/${id}/messages`, { text, ...more }, as);
    }

    async stream(path: string, body: object | undefined, as: Person = 'olga'): Promise<Event[]> {
        return Array.fromAsync(
            this.as(as).events(path, { method: 'POST', ...(body === undefined ? {} : { body }) })
        ) as Promise<Event[]>;
    }

    /** Messages, oldest first. */
    async messages(id: number, as: Person = 'olga'): Promise<Any[]> {
        return (
            await this.ask('GET', `/conversations/${id}/messages?limit=200`, undefined, as)
        ).data.reverse();
    }

    async close(): Promise<void> {
        await this.host.close();
        await this.model.close();
    }
}

/** Starts the plugin with one provider. */
export async function createAiRig(options: RigOptions = {}): Promise<AiRig> {
    const { now = null, patienceMs = 5_000, settings = {}, type = 'openai', provider = {} } = options;
    const time = { at: now };
    const model = await new ModelServer().open();
    const host = await createTestHost(defineAi({ now: () => time.at ?? Date.now(), patienceMs }), {
        package: new URL('../../../extensions/ai', import.meta.url),
        settings: { requestsPerMinute: 600, ...settings },
        timing: { patienceMs: 60_000 }
    });
    host.network.answer('model.test', async (request) => {
        const url = new URL(request.url);
        const { signal, method } = request;
        const body = method === 'GET' ? null : await request.text();
        const headers = Object.fromEntries(request.headers);
        return fetch(`http://127.0.0.1:${model.port}${url.pathname}${url.search}`, {
            method,
            headers,
            body,
            signal
        });
    });
    const rig = new AiRig(host, model, time);
    if (provider !== null) {
        await rig.provider({ type, ...provider });
    }
    return rig;
}

/** The text of an answer's events. */
export const textOf = (events: readonly Event[]): string =>
    events
        .filter(({ event }) => event === 'text')
        .map(({ data }) => data.delta as string)
        .join('');

/** The data of the one event of a name. */
export const dataOf = (events: readonly Event[], name: string): Any => {
    const found = events.filter(({ event }) => event === name);
    if (found.length !== 1) {
        throw new Error(`${found.length} events ${name} in ${JSON.stringify(events)}`);
    }
    return found[0]?.data;
};

/** The names of events, without those of text. */
export const namesOf = (events: readonly Event[]): string[] =>
    events.map(({ event }) => event ?? 'message').filter((name) => name !== 'text');
