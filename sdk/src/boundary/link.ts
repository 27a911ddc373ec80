/**
 * The boundary over a message port, for a generation in another thread: each side offers methods of one object in and one answer out (see
 * `protocol.ts`). Values are cloned; at the top level of an object, functions become calls back, signals follow their original, and series
 * and streams are transferred with their failures in band, since a cloned error loses its code and data.
 */
import { createFailure, type Failure, isFailure } from '../errors.ts';
import { Asked, AskedTap } from './asked.ts';
import { failureOf } from './failures.ts';
import { isFields, isSeries } from './plain.ts';

/** What a link needs of a port: a worker, its parent, or either end of a channel. */
export interface Port {
    postMessage(message: unknown, transfer?: readonly object[]): void;
    on(event: 'message', listener: (message: never) => void): unknown;
    off(event: 'message', listener: (message: never) => void): unknown;
}

type Kind = 'function' | 'signal' | 'iterable' | 'stream';
interface Packed {
    readonly plain: unknown;
    readonly parts: readonly (readonly [key: string, kind: Kind, value: unknown])[];
}
type Message =
    | { readonly do: 'call'; readonly call: number; readonly method: string | number; readonly input: Packed }
    | { readonly do: 'answer'; readonly call: number; readonly answer?: Packed; readonly failure?: Failure }
    | { readonly do: 'abort'; readonly signal: number }
    | { readonly do: 'release'; readonly function: number };
type Chunk = { readonly value: unknown } | { readonly failure: Failure };
type Method = (input: unknown) => Promise<unknown>;

/** One end of a connection: offers `methods`, and gives those of the other side. */
export class Link<R extends object> {
    /** The methods of the other side. */
    readonly remote: R;
    readonly #port: Port;
    readonly #methods: Readonly<Record<string, Method>>;
    readonly #calls = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
    readonly #functions = new Map<number, Method>();
    readonly #signals = new Map<number, AbortController>();
    readonly #stubs = new FinalizationRegistry<number>((id) => this.#send({ do: 'release', function: id }));
    readonly #listener = (message: never): void => void this.#receive(message);
    #next = 1;
    #closed: Error | null = null;

    constructor(port: Port, methods: object) {
        this.#port = port;
        this.#methods = methods as Readonly<Record<string, Method>>;
        const stubs = new Map<string, Method>();
        this.remote = new Proxy(Object.freeze({}), {
            get: (_target, name) => {
                if (typeof name !== 'string' || name === 'then') {
                    return undefined;
                }
                const stub = stubs.get(name) ?? ((input: unknown) => this.#call(name, input));
                stubs.set(name, stub);
                return stub;
            }
        }) as R;
        port.on('message', this.#listener);
    }

    /** Rejects the calls under way; calls of the other side are not answered any more. */
    close(reason: Error): void {
        this.#closed = reason;
        this.#port.off('message', this.#listener);
        for (const { reject } of this.#calls.values()) {
            reject(reason);
        }
        for (const controller of this.#signals.values()) {
            controller.abort(reason);
        }
        this.#calls.clear();
        this.#functions.clear();
        this.#signals.clear();
    }

    #send(message: Message, transferables: readonly object[] = []): void {
        if (this.#closed === null) {
            this.#port.postMessage(message, transferables);
        }
    }

    #call(method: string | number, input: unknown): Promise<unknown> {
        if (this.#closed !== null) {
            return Promise.reject(this.#closed);
        }
        const call = this.#id();
        return new Promise((resolve, reject) => {
            this.#calls.set(call, { resolve, reject });
            try {
                const { packed, transferables } = this.#pack(input);
                this.#send({ do: 'call', call, method, input: packed }, transferables);
            } catch (error) {
                this.#calls.delete(call);
                reject(error instanceof Error ? error : new Error(String(error)));
            }
        });
    }

    async #receive(message: Message): Promise<void> {
        switch (message.do) {
            case 'call':
                return this.#answer(message.call, message.method, message.input);
            case 'abort': {
                this.#signals.get(message.signal)?.abort();
                this.#signals.delete(message.signal);
                return;
            }
            case 'release':
                return void this.#functions.delete(message.function);
            case 'answer': {
                const waiting = this.#calls.get(message.call);
                this.#calls.delete(message.call);
                if (message.failure !== undefined) {
                    waiting?.reject(createFailure(message.failure));
                } else {
                    waiting?.resolve(message.answer === undefined ? undefined : this.#unpack(message.answer));
                }
            }
        }
    }

    async #answer(call: number, name: string | number, input: Packed): Promise<void> {
        try {
            const method =
                typeof name === 'number'
                    ? this.#functions.get(name)
                    : Object.hasOwn(this.#methods, name)
                      ? this.#methods[name]
                      : undefined;
            if (method === undefined) {
                throw new TypeError(`The other side has no method ${name}`);
            }
            const { packed, transferables } = this.#pack(await method(this.#unpack(input)));
            this.#send({ do: 'answer', call, answer: packed }, transferables);
        } catch (error) {
            this.#send({ do: 'answer', call, failure: plainFailure(error) });
        }
    }

    #pack(given: unknown): { readonly packed: Packed; readonly transferables: readonly object[] } {
        const value = given instanceof Asked || given instanceof AskedTap ? given.whole() : given;
        if (!isFields(value)) {
            return { packed: { plain: value, parts: [] }, transferables: [] };
        }
        const plain: Record<string, unknown> = {};
        const parts: [string, Kind, unknown][] = [];
        const transferables: object[] = [];
        for (const [key, item] of Object.entries(value)) {
            if (typeof item === 'function') {
                const id = this.#id();
                this.#functions.set(id, (input) => (item as Method).call(value, input));
                parts.push([key, 'function', id]);
            } else if (item instanceof AbortSignal) {
                parts.push([key, 'signal', this.#follow(item)]);
            } else if (isSeries(item)) {
                const stream = streamOf(item);
                transferables.push(stream);
                parts.push([key, item instanceof ReadableStream ? 'stream' : 'iterable', stream]);
            } else {
                plain[key] = item;
            }
        }
        return { packed: { plain, parts }, transferables };
    }

    #unpack({ plain, parts }: Packed): unknown {
        for (const [key, kind, value] of parts) {
            (plain as Record<string, unknown>)[key] =
                kind === 'function'
                    ? this.#stub(value as number)
                    : kind === 'signal'
                      ? this.#signal(value as number)
                      : kind === 'stream'
                        ? bytesOf(value as ReadableStream<Chunk>)
                        : itemsOf(value as ReadableStream<Chunk>);
        }
        return plain;
    }

    #stub(id: number): Method {
        const stub: Method = (input) => this.#call(id, input);
        this.#stubs.register(stub, id);
        return stub;
    }

    /** The id under which the other side follows a signal; 0 when the signal has aborted already. */
    #follow(signal: AbortSignal): number {
        if (signal.aborted) {
            return 0;
        }
        const id = this.#id();
        signal.addEventListener('abort', () => this.#send({ do: 'abort', signal: id }), { once: true });
        return id;
    }

    #signal(id: number): AbortSignal {
        if (id === 0) {
            return AbortSignal.abort();
        }
        const controller = new AbortController();
        this.#signals.set(id, controller);
        return controller.signal;
    }

    #id(): number {
        return this.#next++;
    }
}

function plainFailure(error: unknown): Failure {
    const { code, reason, message, data } = failureOf(error);
    return { code, reason, message: isFailure(error) ? error.message : message, data };
}

/** Turns a series into a stream of chunks that can be transferred. The next chunk is made when the other side asks for it. */
function streamOf(series: AsyncIterable<unknown>): ReadableStream<Chunk> {
    const iterator = series[Symbol.asyncIterator]();
    return new ReadableStream<Chunk>(
        {
            async pull(controller) {
                try {
                    const { done, value } = await iterator.next();
                    if (done === true) {
                        controller.close();
                        return;
                    }
                    controller.enqueue({ value });
                } catch (error) {
                    controller.enqueue({ failure: plainFailure(error) });
                    controller.close();
                }
            },
            cancel: async () => void (await iterator.return?.())
        },
        { highWaterMark: 0 }
    );
}

async function* itemsOf(stream: ReadableStream<Chunk>): AsyncGenerator<unknown> {
    for await (const chunk of stream) {
        if ('failure' in chunk) {
            throw createFailure(chunk.failure);
        }
        yield chunk.value;
    }
}

function bytesOf(stream: ReadableStream<Chunk>): ReadableStream<unknown> {
    const items = itemsOf(stream);
    return new ReadableStream(
        {
            async pull(controller) {
                const { done, value } = await items.next();
                if (done === true) {
                    controller.close();
                } else {
                    controller.enqueue(value);
                }
            },
            cancel: async () => void (await items.return(undefined))
        },
        { highWaterMark: 0 }
    );
}
