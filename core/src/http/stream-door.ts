/** The door of event streams: one event a chunk, a comment now and then to keep proxies awake, and an end when anybody leaves. */
import { Readable } from 'node:stream';
import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import type { StreamEvent } from '@portico/sdk';
import { isFailure } from '@portico/sdk';
import { coreRequest, type HttpCall } from './http-call.ts';
import { readAddress, readBody } from './input.ts';
import type { HttpPorts } from './ports.ts';
import type { Route } from './route.ts';

type StreamRoute = Extract<Route, { kind: 'stream' }>;

const heartbeatMs = 15_000;
/** When a client should come back after the server behind its stream was taken away. */
const resumeMs = 1_000;

export async function answerStream(route: StreamRoute, call: HttpCall, request: Request, h: ResponseToolkit, ports: HttpPorts): Promise<Lifecycle.ReturnValue> {
    readAddress(route, call, request);
    if (route.method === 'POST') {
        readBody(route, call, request);
    }
    const events = (await route.handler(coreRequest(call) as never)) as AsyncIterable<StreamEvent>;
    const body = Readable.from(chunks(events, call, ports), { objectMode: false, highWaterMark: 1 });
    call.signal.addEventListener('abort', () => body.destroy(), { once: true });
    return h.response(body).type('text/event-stream; charset=utf-8').header('x-accel-buffering', 'no');
}

/** The text of a stream. The first comment sends the headers on their way before anything has happened. */
async function* chunks(events: AsyncIterable<StreamEvent>, call: HttpCall, ports: HttpPorts): AsyncGenerator<string> {
    yield ': open\n\n';
    const iterator = events[Symbol.asyncIterator]();
    const ended = aborted(call.signal, 'ended');
    const going = aborted(call.ending, 'going');
    try {
        let next = iterator.next();
        for (;;) {
            const winner = await Promise.race([next, ended, going, beat(call.signal)]);
            if (winner === 'ended') {
                return;
            }
            if (winner === 'going') {
                yield `retry: ${resumeMs}\n\n`;
                return;
            }
            if (winner === 'beat') {
                yield ': beat\n\n';
                continue;
            }
            if (winner.done === true) {
                return;
            }
            yield textOf(winner.value);
            next = iterator.next();
        }
    }
    catch (error) {
        ports.log.error('An event stream failed', { requestId: call.id, error });
        yield textOf({ event: 'error', data: isFailure(error) ? { code: error.code, reason: error.reason, message: error.message } : { code: 50000, reason: 'INTERNAL' } });
    }
    finally {
        // A producer that waits for its next event is not made to finish it first.
        void iterator.return?.().catch(() => undefined);
    }
}

function aborted<T extends string>(signal: AbortSignal, word: T): Promise<T> {
    return new Promise((resolve) => {
        if (signal.aborted) {
            resolve(word);
        }
        signal.addEventListener('abort', () => resolve(word), { once: true });
    });
}

function beat(signal: AbortSignal): Promise<'beat'> {
    return new Promise((resolve) => {
        const timer = setTimeout(() => resolve('beat'), heartbeatMs);
        timer.unref();
        signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
    });
}

function textOf(event: StreamEvent): string {
    const field = (name: string, value: string | undefined): string => (value === undefined ? '' : `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`);
    return `${field('id', event.id)}${field('event', event.event)}data: ${JSON.stringify(event.data) ?? 'null'}\n\n`;
}
