/** Lines of a stream as they come: a filter, and a pause that loses nothing. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { ApiFailure } from '../../api/failure.ts';
import { follow, type StreamEvent } from '../../api/streams.ts';
import { t } from '../../words/t.ts';
import { Button } from '../button.tsx';
import { Icon } from '../icon.tsx';

const kept = 2_000;
const drawnEvery = 100;

/** Follows a stream while it is shown. */
export function Log({ path, title }: { readonly path: string; readonly title: string }) {
    const [filter, setFilter] = useState('');
    const [isPaused, setPaused] = useState(false);
    const { lines, state, clear } = useLines(path);
    const frozen = useRef<readonly string[]>([]);
    if (!isPaused) {
        frozen.current = lines;
    }
    const box = useRef<HTMLDivElement>(null);
    const isAtEnd = useRef(true);
    const needle = filter.toLowerCase();
    const shown = frozen.current.filter((line) => needle === '' || line.toLowerCase().includes(needle));
    useEffect(() => {
        if (box.current !== null && isAtEnd.current) {
            box.current.scrollTop = box.current.scrollHeight;
        }
    }, [shown.length, lines]);
    return (
        <section>
            <header class="row spread">
                <label class="filter">
                    <span>{t('Filter')}</span>
                    <input
                        type="search"
                        value={filter}
                        onInput={(event) => setFilter(event.currentTarget.value)}
                    />
                </label>
                <div class="row">
                    <span class="dim" role="status">
                        {isPaused ? t('paused') : state === 'live' ? t('live') : t(state)}
                    </span>
                    <Button onPress={() => setPaused(!isPaused)}>
                        <Icon name={isPaused ? 'play' : 'pause'} />
                        {isPaused ? t('Go on') : t('Pause')}
                    </Button>
                    <Button look="quiet" onPress={clear}>
                        {t('Clear')}
                    </Button>
                </div>
            </header>
            <div
                ref={box}
                class="lines"
                role="log"
                tabIndex={0}
                aria-label={title}
                onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
                    isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 8;
                }}
            >
                {shown.length === 0 ? (
                    <div>{lines.length === 0 ? t('No line yet') : t('No line fits')}</div>
                ) : null}
                {shown.map((line, index) => (
                    <div key={index}>{line}</div>
                ))}
            </div>
        </section>
    );
}

function useLines(path: string): { lines: readonly string[]; state: string; clear: () => void } {
    const [lines, setLines] = useState<readonly string[]>([]);
    const [state, setState] = useState('live');
    useEffect(() => {
        const controller = new AbortController();
        let waiting: string[] = [];
        let timer: ReturnType<typeof setTimeout> | undefined;
        const draw = (): void => {
            const next = waiting;
            waiting = [];
            timer = undefined;
            setLines((before) => [...before, ...next].slice(-kept));
        };
        setLines([]);
        setState('live');
        follow(
            path,
            (event) => {
                waiting.push(...linesOf(event));
                timer ??= setTimeout(draw, drawnEvery);
            },
            controller.signal
        ).then(
            () => controller.signal.aborted || setState('ended'),
            (error: unknown) => setState(error instanceof ApiFailure ? error.message : 'ended')
        );
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [path]);
    return { lines, state, clear: () => setLines([]) };
}

/** The text of an event: the field that holds it, else all of it. */
function linesOf({ event, data }: StreamEvent): readonly string[] {
    if (typeof data !== 'object' || data === null) {
        return data === null ? [] : [String(data)];
    }
    const record = data as Record<string, unknown>;
    const { state, reason } = record;
    if (event === 'end' && typeof state === 'string') {
        return [typeof reason === 'string' ? `${state}: ${reason}` : state];
    }
    const text = record['text'] ?? record['line'] ?? record['msg'] ?? record['message'];
    if (typeof text === 'string') {
        const time = typeof record['at'] === 'string' ? `${record['at'].slice(11, 19)} ` : '';
        const level = typeof record['level'] === 'string' ? `${record['level'].toUpperCase()} ` : '';
        return text
            .replace(/\n$/, '')
            .split('\n')
            .map((line) => time + level + line);
    }
    return Object.keys(record).length === 0 ? [] : [`${event} ${JSON.stringify(record)}`];
}
