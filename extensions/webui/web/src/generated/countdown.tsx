/** A state that ends by itself: the time that is left, and both ways. */
import { useEffect, useState } from 'preact/hooks';

import { invalidate, useMay, useRead } from '../api/queries.ts';
import { Button } from '../kit/button.tsx';
import { toastFailure } from '../kit/dialogs/toast.tsx';
import { Icon } from '../kit/icon.tsx';
import type { Deadline } from '../schema/document.ts';
import { t } from '../words/t.ts';
import type { Operation } from './operations.ts';
import { pathOf, run } from './run.ts';

/** The question with its countdown; nothing while there is no such state. @param operations - where the two ways are looked up */
export function Countdown({
    read,
    operations
}: {
    readonly read: Operation;
    readonly operations: readonly Operation[];
}) {
    const { deadline } = read.ui;
    const path = pathOf(read, {});
    const { data } = useRead<unknown>(deadline === undefined ? null : path);
    const until = deadline === undefined ? null : fieldOf(data, deadline.until);
    const left = useSecondsUntil(typeof until === 'string' ? until : null, path);
    const may = useMay();
    if (deadline === undefined || left === null) {
        return null;
    }
    const press = (id: string): Promise<void> => answer(operations, id, deadline, data);
    const canAnswer = operations.some((each) => each.id === deadline.keep && may(each.permission));
    return (
        <div class="banner countdown" role="alert">
            <Icon name="clock" />
            <div>
                <strong>{t(deadline.question)}</strong>
                <p>{t('Without an answer it is undone by itself.')}</p>
            </div>
            <span class="figure" role="timer" aria-label={t('{count} seconds left', { count: left })}>
                {left} s
            </span>
            {canAnswer ? (
                <>
                    <Button onPress={() => press(deadline.undo)}>{t('Undo now')}</Button>
                    <Button look="primary" onPress={() => press(deadline.keep)}>
                        {t('Keep it')}
                    </Button>
                </>
            ) : null}
        </div>
    );
}

/** Whole seconds until a time, counted down; null without one and after it. Then the object is read again. */
function useSecondsUntil(time: string | null, path: string): number | null {
    const [now, setNow] = useState(Date.now());
    const left = time === null ? null : Math.ceil((Date.parse(time) - now) / 1000);
    useEffect(() => {
        if (time === null) {
            return undefined;
        }
        setNow(Date.now());
        const timer = setInterval(() => setNow(Date.now()), 250);
        return () => clearInterval(timer);
    }, [time]);
    const isOver = left !== null && left <= 0;
    useEffect(() => {
        // What undoes it may need a moment.
        const timer = isOver ? setInterval(() => void invalidate(path), 1_000) : undefined;
        return () => clearInterval(timer);
    }, [isOver, path]);
    return isOver ? null : left;
}

async function answer(
    operations: readonly Operation[],
    id: string,
    { body }: Deadline,
    data: unknown
): Promise<void> {
    const operation = operations.find((each) => each.id === id);
    if (operation !== undefined) {
        const values = Object.entries(body ?? {}).map(([name, path]) => [name, fieldOf(data, path)]);
        await run(operation, {}, { body: Object.fromEntries(values) }).catch(toastFailure);
    }
}

/** The value at a path of names with dots between them. */
function fieldOf(data: unknown, path: string): unknown {
    return path
        .split('.')
        .reduce<unknown>(
            (value, name) => (value as Readonly<Record<string, unknown>> | null | undefined)?.[name],
            data
        );
}
