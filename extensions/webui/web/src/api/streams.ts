/** Event streams by `fetch`, so that the token stays in a header. They go on where they were cut. */
import { open, openWith } from './client.ts';
import { ApiFailure } from './failure.ts';

/** One event of a stream. */
export interface StreamEvent {
    readonly event: string;
    readonly data: unknown;
}

const longestPause = 15_000;

/**
 * Follows a stream until the signal aborts, the panel sends `end` or `error`, or it refuses. A cut connection is made again with the
 * id of the last event, after a pause that grows.
 * @param reach - is told when the stream is open, and when it is cut
 * @throws ApiFailure when the panel refuses the stream
 */
export async function follow(
    path: string,
    tell: (event: StreamEvent) => void,
    signal: AbortSignal,
    reach: (isOpen: boolean) => void = () => undefined
): Promise<void> {
    let lastId: string | null = null;
    for (let pause = 500; !signal.aborted; pause = Math.min(pause * 2, longestPause)) {
        try {
            const response: Response = await open(
                path,
                lastId === null ? {} : { 'last-event-id': lastId },
                signal
            );
            reach(true);
            for await (const { id, ...event } of eventsOf(response)) {
                lastId = id ?? lastId;
                pause = 500;
                tell(event);
                if (event.event === 'end' || event.event === 'error') {
                    return;
                }
            }
        } catch (error) {
            if (error instanceof ApiFailure && error.status >= 400 && error.status < 500) {
                throw error;
            }
        }
        if (signal.aborted) {
            return;
        }
        reach(false);
        await new Promise((resolve) => setTimeout(resolve, pause));
    }
}

/** Sends a body, and reads the events that answer it. It is never sent again. @throws ApiFailure when the panel refuses it */
export async function send(
    path: string,
    body: unknown,
    tell: (event: StreamEvent) => void,
    signal: AbortSignal
): Promise<void> {
    for await (const { event, data } of eventsOf(await openWith(path, body, signal))) {
        tell({ event, data });
    }
}

async function* eventsOf(response: Response): AsyncGenerator<StreamEvent & { readonly id: string | null }> {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (let chunk = await reader?.read(); chunk !== undefined && !chunk.done; chunk = await reader?.read()) {
        const blocks = (rest + chunk.value).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
            const fields = new Map(block.split('\n').map((line) => splitField(line)));
            const data = fields.get('data');
            if (data !== undefined) {
                yield {
                    id: fields.get('id') ?? null,
                    event: fields.get('event') ?? 'message',
                    data: JSON.parse(data)
                };
            }
        }
    }
}

function splitField(line: string): readonly [string, string] {
    const at = line.indexOf(':');
    return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 1).trimStart()];
}
