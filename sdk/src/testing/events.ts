/** Event streams, as text and back. */
import { isFailure } from '../errors.ts';
import type { StreamEvent } from '../route.ts';

/** What the panel sends of a series of events. */
export async function* eventText(
    events: AsyncIterable<StreamEvent>,
    signal: AbortSignal
): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    yield encoder.encode(': open\n\n');
    const iterator = events[Symbol.asyncIterator]();
    const left = Promise.withResolvers<null>();
    const leave = (): void => left.resolve(null);
    signal.addEventListener('abort', leave, { once: true });
    try {
        while (!signal.aborted) {
            const next = await Promise.race([iterator.next(), left.promise]);
            if (next === null || next.done === true) {
                return;
            }
            yield encoder.encode(textOf(next.value));
        }
    } catch (error) {
        yield encoder.encode(
            textOf({
                event: 'error',
                data: isFailure(error)
                    ? { code: error.code, reason: error.reason, message: error.message }
                    : { code: 50000, reason: 'INTERNAL' }
            })
        );
    } finally {
        signal.removeEventListener('abort', leave);
        void iterator.return?.().catch(() => undefined);
    }
}

function textOf(event: StreamEvent): string {
    const field = (name: string, value: string | undefined): string =>
        value === undefined ? '' : `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`;
    return `${field('id', event.id)}${field('event', event.event)}data: ${JSON.stringify(event.data) ?? 'null'}\n\n`;
}

/** The events that a client reads from such a text; comments are left out. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of body) {
        text += decoder.decode(chunk, { stream: true });
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
            const fields = new Map(
                text
                    .slice(0, end)
                    .split('\n')
                    .map(
                        (line) =>
                            [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)] as const
                    )
            );
            text = text.slice(end + 2);
            const [data, event, id] = [fields.get('data'), fields.get('event'), fields.get('id')];
            if (data !== undefined) {
                yield {
                    ...(id === undefined ? {} : { id }),
                    ...(event === undefined ? {} : { event }),
                    data: JSON.parse(data) as unknown
                };
            }
        }
    }
}
