import { ApiFailure } from '../../api/failure.ts';
import { t } from '../../words/t.ts';
import { Store, useStore } from '../store.ts';

interface Toast {
    readonly id: number;
    readonly tone: 'good' | 'bad';
    readonly text: string;
    readonly detail: string | null;
}

const toasts = new Store<readonly Toast[]>([]);
const shownFor = { good: 4_000, bad: 12_000 };
let lastId = 0;

/** Tells that something is done. */
export const toast = (text: string): void => add('good', text, null);

/** Tells that something went wrong, in words of the caller. */
export const toastBad = (text: string): void => add('bad', text, null);

/** Tells a failure: what the panel says, and the id of the request. */
export function toastFailure(error: unknown): void {
    const requestId = error instanceof ApiFailure ? error.requestId : null;
    const text = error instanceof Error ? error.message : String(error);
    add('bad', text, requestId === null ? null : t('Request {id}', { id: requestId }));
}

function add(tone: Toast['tone'], text: string, detail: string | null): void {
    lastId += 1;
    const id = lastId;
    toasts.set([...toasts.value, { id, tone, text, detail }]);
    setTimeout(() => toasts.set(toasts.value.filter((each) => each.id !== id)), shownFor[tone]);
}

/** The place of the toasts. A screen reader reads them as they come. */
export function Toasts() {
    return (
        <div class="toasts" role="status" aria-live="polite">
            {useStore(toasts).map(({ id, tone, text, detail }) => (
                <p key={id} class={`toast ${tone}`}>
                    {text}
                    {detail === null ? null : <small>{detail}</small>}
                </p>
            ))}
        </div>
    );
}
