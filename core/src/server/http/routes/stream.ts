/** Event streams: one event a chunk, a comment now and then to keep proxies awake, and an end when either side leaves. */
import { Readable } from 'node:stream';

import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import { isFailure, type StreamEvent } from '@portico/sdk';
import { checkedEvents } from '@portico/sdk/host';

import type { HttpPorts } from '../ports.ts';
import type { HttpCall } from '../request/http-call.ts';
import { readAddress, readBody } from '../request/input/input.ts';
import type { Route } from '../route.ts';

type StreamRoute = Extract<Route, { kind: 'stream' }>;

const heartbeatMs = 15_000;
/** Of one event. Listeners that read slowly hold one each. */
const mostCharacters = 1024 * 1024;
/** When a client should come back after the server behind its stream was taken away. */
const resumeMs = 1_000;

/** A client cannot go on with a stream that a POST began: it must know that this one is not whole. */
const cut: StreamEvent = {
    event: 'error',
    data: {
        code: 50300,
        reason: 'NOT_READY',
        message: 'The panel stops, or one of its plugins changed: this stream was cut'
    }
};

/** Answers with an event stream. */
export async function answerStream(
    route: StreamRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
): Promise<Lifecycle.ReturnValue> {
    readAddress(route, call, request);
    if (route.method === 'POST') {
        readBody(route, call, request);
    }
    const produced = await route.handler(call);
    const events =
        ports.checkReturns && route.events !== undefined
            ? checkedEvents(produced, route.events, route.id)
            : produced;
    const body = Readable.from(chunks(route, events, call, ports), { objectMode: false, highWaterMark: 1 });
    call.signal.addEventListener('abort', () => body.destroy(), { once: true });
    return h.response(body).type('text/event-stream; charset=utf-8').header('x-accel-buffering', 'no');
}

/** The text of a stream. The first comment sends the headers on their way before anything has happened. */
async function* chunks(
    route: StreamRoute,
    events: AsyncIterable<StreamEvent>,
    call: HttpCall,
    ports: HttpPorts
): AsyncGenerator<string> {
    yield ': open\n\n';
    const iterator = events[Symbol.asyncIterator]();
    const bell = createBell(call);
    try {
        const arrivals = createArrivals(iterator, () => bell.ring());
        arrivals.ask();
        for (;;) {
            if (call.signal.aborted) {
                return;
            }
            if (call.ending.aborted) {
                yield route.method === 'POST' ? textOf(cut) : `retry: ${resumeMs}\n\n`;
                return;
            }
            const next = arrivals.take();
            if (next !== null) {
                if (next.done === true) {
                    return;
                }
                yield textOf(next.value);
                arrivals.ask();
            } else if (bell.isDue()) {
                yield ': beat\n\n';
            } else {
                await bell.rung();
            }
        }
    } catch (error) {
        ports.log.error('An event stream failed', { requestId: call.id, error });
        yield textOf({
            event: 'error',
            data: isFailure(error)
                ? { code: error.code, reason: error.reason, message: error.message }
                : { code: 50000, reason: 'INTERNAL' }
        });
    } finally {
        bell.remove();
        // A producer that waits for its next event is not made to finish it first.
        void iterator.return?.().catch(() => undefined);
    }
}

/** What wakes a stream. One listener and one timer for all of its life: a race for each event would leave something behind each time. */
interface Bell {
    ring(): void;
    /** Resolves with the next ring; one that came meanwhile counts. */
    rung(): Promise<void>;
    /** True once whenever nothing but beats was heard for a while. */
    isDue(): boolean;
    remove(): void;
}

function createBell({ signal, ending }: HttpCall): Bell {
    let heard = false;
    let due = false;
    let wake: () => void = () => undefined;
    const ring = (): void => {
        heard = true;
        wake();
    };
    const timer = setInterval(() => {
        due = true;
        ring();
    }, heartbeatMs).unref();
    signal.addEventListener('abort', ring, { once: true });
    ending.addEventListener('abort', ring, { once: true });
    return {
        ring,
        async rung() {
            if (!heard) {
                await new Promise<void>((resolve) => {
                    wake = resolve;
                });
            }
            heard = false;
        },
        isDue() {
            const was = due;
            due = false;
            return was;
        },
        remove() {
            clearInterval(timer);
            signal.removeEventListener('abort', ring);
            ending.removeEventListener('abort', ring);
        }
    };
}

/** The next event, asked for one at a time and looked at without waiting. */
interface Arrivals {
    ask(): void;
    /** Null while it has not come. @throws what the producer threw */
    take(): IteratorResult<StreamEvent> | null;
}

function createArrivals(iterator: AsyncIterator<StreamEvent>, came: () => void): Arrivals {
    let arrived: { readonly result: IteratorResult<StreamEvent> } | { readonly error: unknown } | null = null;
    const put = (arrival: typeof arrived): void => {
        arrived = arrival;
        came();
    };
    return {
        ask: () =>
            void iterator.next().then(
                (result) => put({ result }),
                (error: unknown) => put({ error })
            ),
        take() {
            const taken = arrived as
                { readonly result: IteratorResult<StreamEvent> } | { readonly error: unknown } | null;
            arrived = null;
            if (taken === null) {
                return null;
            }
            if ('error' in taken) {
                throw taken.error;
            }
            return taken.result;
        }
    };
}

function textOf(event: StreamEvent): string {
    const field = (name: string, value: string | undefined): string =>
        value === undefined ? '' : `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`;
    const data = JSON.stringify(event.data) ?? 'null';
    if (data.length > mostCharacters) {
        throw new RangeError(
            `An event has ${Math.ceil(data.length / 1024 / 1024)} MiB, and 1 is allowed: send more events, or offer a download`
        );
    }
    return `${field('id', event.id)}${field('event', event.event)}data: ${data}\n\n`;
}
