/** A WebSocket in a test: its two ends without a network between them. */
import type { Caller } from './actors.ts';
import { refusalOf } from './answer.ts';
import type { Front } from './front.ts';

type Message = string | Uint8Array;

/** The client's end. */
export interface TestSocket extends AsyncIterable<Message> {
    send(data: Message): void;
    /** The next message. @throws Error when the socket is closed before one comes */
    receive(): Promise<Message>;
    close(code?: number): void;
    /** How it was closed: 1000 when the handler is done, 1011 when it failed, 1012 when the plugin stopped, 4401 when the session ended. */
    readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

/** Messages in one direction. */
class Queue {
    readonly #waiting: Message[] = [];
    #ended = false;
    #wake: () => void = () => undefined;

    push(message: Message): void {
        this.#waiting.push(message);
        this.#wake();
    }

    end(): void {
        this.#ended = true;
        this.#wake();
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
        for (;;) {
            const message = this.#waiting.shift();
            if (message !== undefined) {
                yield message;
            } else if (this.#ended) {
                return;
            } else {
                await new Promise<void>((resolve) => {
                    this.#wake = resolve;
                });
            }
        }
    }
}

const mebibyte = 1024 * 1024;

export async function openTestSocket(front: Front, request: Request, who: Caller): Promise<TestSocket> {
    const opened = await front.open(request, who).catch(async (error: unknown) => {
        throw await refusalOf(error);
    });
    const { guest, route, plain, ending, ended, end } = opened;
    const [up, down] = [new Queue(), new Queue()];
    const over = new AbortController();
    const closed = Promise.withResolvers<{ readonly code: number; readonly reason: string }>();
    const close = (code: number, reason: string): void => {
        closed.resolve({ code, reason });
        over.abort();
        up.end();
        down.end();
        end();
    };
    const leave = (): void => close(1012, 'The service restarts');
    const expire = (): void => close(4401, 'The session has ended');
    ending.addEventListener('abort', leave, { once: true });
    ended.addEventListener('abort', expire, { once: true });
    // The dry run refuses what the schemas do not take, before anything is open.
    await guest.check({ route: route.id, request: plain }).catch(async (error: unknown) => {
        close(1002, 'refused');
        throw await refusalOf(error);
    });
    void guest
        .socket({
            route: route.id,
            request: plain,
            signal: over.signal,
            messages: up,
            async send({ data }) {
                if (over.signal.aborted) {
                    throw new Error('The WebSocket is closed');
                }
                down.push(data);
            },
            close: async ({ code = 1000, reason = '' }) => close(code, reason)
        })
        .then(
            () => close(1000, ''),
            () => close(1011, 'Something went wrong')
        )
        .finally(() => {
            ending.removeEventListener('abort', leave);
            ended.removeEventListener('abort', expire);
        });
    const inbox = down[Symbol.asyncIterator]();
    return {
        send(data) {
            if (data.length > (route.maxMessageBytes ?? mebibyte)) {
                close(1009, 'Max payload size exceeded');
                return;
            }
            up.push(data);
        },
        async receive() {
            const next = await inbox.next();
            if (next.done === true) {
                const { code, reason } = await closed.promise;
                throw new Error(`The WebSocket was closed (${code} ${reason})`);
            }
            return next.value;
        },
        close: (code = 1000) => close(code, ''),
        closed: closed.promise,
        [Symbol.asyncIterator]: () => inbox
    };
}
