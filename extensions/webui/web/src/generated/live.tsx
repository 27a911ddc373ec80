/** A stream as it comes: the newest lines, with a pause. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { address } from '../api/client.ts';
import { ApiFailure } from '../api/failure.ts';
import { follow, type StreamEvent } from '../api/streams.ts';
import { Button } from '../kit/button.tsx';
import { t } from '../words/t.ts';
import type { Operation } from './operations.ts';
import { type Params, pathOf } from './run.ts';

const kept = 2_000;

/** Follows a stream while it is shown. */
export function Live({
    operation,
    params = {}
}: {
    readonly operation: Operation;
    readonly params?: Params;
}) {
    const [lines, setLines] = useState<readonly string[]>([]);
    const [state, setState] = useState<'live' | 'paused' | 'ended' | string>('live');
    const end = useRef<HTMLDivElement>(null);
    const path = streamPath(operation, params);
    useEffect(() => {
        if (state !== 'live') {
            return undefined;
        }
        const controller = new AbortController();
        follow(
            path,
            (event) => setLines((before) => [...before, ...linesOf(event)].slice(-kept)),
            controller.signal
        ).then(
            () => controller.signal.aborted || setState('ended'),
            (error: unknown) => setState(error instanceof ApiFailure ? error.message : 'ended')
        );
        return () => controller.abort();
    }, [path, state]);
    useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [lines]);
    return (
        <section class="live">
            <header class="row">
                <h3>{operation.title}</h3>
                <span class="dim" role="status">
                    {state === 'live' ? t('live') : t(state)}
                </span>
                <Button look="quiet" onPress={() => setState(state === 'live' ? 'paused' : 'live')}>
                    {state === 'live' ? t('Pause') : t('Go on')}
                </Button>
            </header>
            <div class="lines" role="log" tabIndex={0} aria-label={operation.title}>
                {lines.map((line, index) => (
                    <div key={index}>{line}</div>
                ))}
                <div ref={end} />
            </div>
        </section>
    );
}

function streamPath(operation: Operation, params: Params): string {
    const canFollow = operation.query.some(({ name }) => name === 'follow');
    return address(pathOf(operation, params), canFollow ? { follow: true } : {});
}

/** The text of an event: the field that holds it, else all of it. */
function linesOf({ event, data }: StreamEvent): readonly string[] {
    if (typeof data !== 'object' || data === null) {
        return data === null ? [] : [String(data)];
    }
    const record = data as Record<string, unknown>;
    const text = record['text'] ?? record['line'] ?? record['msg'] ?? record['message'];
    if (typeof text === 'string') {
        const time = typeof record['at'] === 'string' ? `${record['at'].slice(11, 19)} ` : '';
        return text
            .replace(/\n$/, '')
            .split('\n')
            .map((line) => time + line);
    }
    return Object.keys(record).length === 0 ? [] : [`${event} ${JSON.stringify(record)}`];
}
