/** What a schedule comes to: in words, and its next times. */
import { useQuery } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';

import { call } from '../api/client.ts';
import { useOperation } from '../api/document.ts';
import type { ApiFailure } from '../api/failure.ts';
import { fullTime } from '../words/format.ts';
import { said } from '../words/t.ts';
import type { Plain } from './schema.ts';

interface TimesProps {
    readonly shape: Plain;
    readonly value: unknown;
    /** The values of all fields beside this one. */
    readonly among: Readonly<Record<string, unknown>>;
}

interface Preview {
    /** In words; null where they cannot be found. */
    readonly text: string | null;
    readonly times: readonly string[];
}

const pauseMs = 400;
const shownTimes = 5;

/** Asks the operation that the schema refers to, a moment after the last letter; nothing where it refers to none. */
export function Times({ shape, value, among }: TimesProps) {
    const path = useOperation(shape.schema['x-ui']?.ref, 'post');
    const typed = typeof value === 'string' ? value.trim() : '';
    const schedule = useLater(typed);
    const timezone = among['timezone'] || undefined;
    const { data, error } = useQuery<Preview, ApiFailure>({
        queryKey: ['schedule', path, schedule, timezone],
        queryFn: async ({ signal }) => {
            const body = { schedule, timezone, count: shownTimes };
            return (await call<Preview>('POST', path ?? '', { body, signal })).data;
        },
        enabled: path !== null && schedule !== '',
        placeholderData: (before) => before
    });
    return path === null || typed === '' ? null : (
        <div class="times" role="status">
            {error !== null ? (
                <p class="dim">{Object.values(error.fields)[0] ?? error.message}</p>
            ) : data === undefined ? null : (
                <>
                    {data.text === null ? null : <strong>{said(data.text)}</strong>}
                    <ol>
                        {data.times.map((each) => (
                            <li key={each}>
                                <time dateTime={each}>{fullTime(each)}</time>
                            </li>
                        ))}
                    </ol>
                </>
            )}
        </div>
    );
}

/** A value as it was when it had not changed for a moment. */
function useLater(value: string): string {
    const [later, setLater] = useState(value);
    useEffect(() => {
        const timer = setTimeout(() => setLater(value), pauseMs);
        return () => clearTimeout(timer);
    }, [value]);
    return later;
}
