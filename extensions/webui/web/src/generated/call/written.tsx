/** The answer to a body that comes piece by piece: its text as it grows, and what else was told. */
import { useEffect, useState } from 'preact/hooks';

import { address } from '../../api/client.ts';
import { invalidate } from '../../api/queries.ts';
import { send } from '../../api/streams.ts';
import { toastFailure } from '../../kit/dialogs/toast.tsx';
import { Value } from '../../kit/display/value.tsx';
import { inWords } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';
import type { Operation } from '../operations.ts';
import { pathOf, prefixOf } from '../run.ts';
import type { Input } from './input.ts';

interface Told {
    readonly event: string;
    readonly data: unknown;
}

/** Sends the body once, and shows the answer. Closing it ends the answer. */
export function Written({ operation, input }: { readonly operation: Operation; readonly input: Input }) {
    const [text, setText] = useState('');
    const [told, setTold] = useState<readonly Told[]>([]);
    const [isOver, setOver] = useState(false);
    useEffect(() => {
        const controller = new AbortController();
        const take = (next: Told): void => {
            const piece = pieceOf(next.data);
            if (piece === null) {
                setTold((before) => [...before, next]);
            } else {
                setText((before) => before + piece);
            }
        };
        const path = address(pathOf(operation, input.params), input.query);
        send(path, input.body ?? {}, take, controller.signal)
            .catch((error: unknown) => controller.signal.aborted || toastFailure(error))
            .finally(() => {
                setOver(true);
                void invalidate(prefixOf(operation));
            });
        return () => controller.abort();
    }, [operation, input]);
    return (
        <section class="card" aria-label={operation.title} aria-busy={!isOver}>
            <p class="written" role="status">
                {text === '' && !isOver ? t('Waiting for the answer …') : text}
            </p>
            {told.map(({ event, data }, index) => (
                <div key={index}>
                    <h3>{inWords(event)}</h3>
                    <Value value={data} schema={{}} />
                </div>
            ))}
        </section>
    );
}

/** The piece of text that an event is; null where it is something else. */
function pieceOf(data: unknown): string | null {
    const { delta, text = delta } = (data ?? {}) as Readonly<Record<string, unknown>>;
    return typeof text === 'string' ? text : null;
}
