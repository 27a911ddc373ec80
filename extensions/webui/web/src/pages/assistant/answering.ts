/** An answer as it comes from the model. */
import { useRef, useState } from 'preact/hooks';

import { invalidate } from '../../api/queries.ts';
import { send } from '../../api/streams.ts';
import { toastBad, toastFailure } from '../../kit/dialogs/toast.tsx';
import { t } from '../../words/t.ts';
import { base, type Called } from './assistant-view.ts';

/** What there is of an answer that is under way. */
export interface Answering {
    /** The question that it answers; null where it goes on. */
    readonly question: string | null;
    readonly text: string;
    readonly calls: readonly Called[];
}

/** The answer under way in a conversation, and what begins one. */
export function useAnswer(conversation: number): {
    readonly answer: Answering | null;
    readonly begin: (below: string, question: string | null) => Promise<void>;
} {
    const [answer, setAnswer] = useState<Answering | null>(null);
    const isUnderWay = useRef(false);
    const begin = async (below: string, question: string | null): Promise<void> => {
        if (isUnderWay.current) {
            return;
        }
        isUnderWay.current = true;
        let now: Answering = { question, text: '', calls: [] };
        setAnswer(now);
        try {
            await send(
                `${base}/conversations/${conversation}/${below}`,
                question === null ? {} : { text: question },
                ({ event, data }) => {
                    now = next(now, event, data);
                    setAnswer(now);
                },
                new AbortController().signal
            );
        } catch (error) {
            toastFailure(error);
        } finally {
            await invalidate(base);
            isUnderWay.current = false;
            setAnswer(null);
        }
    };
    return { answer, begin };
}

function next(now: Answering, event: string, data: unknown): Answering {
    const fields = data as Readonly<Record<string, unknown>>;
    switch (event) {
        case 'text':
            return { ...now, text: now.text + String(fields['delta']) };
        case 'call':
            return {
                ...now,
                calls: [
                    ...now.calls,
                    {
                        id: String(fields['id']),
                        route: String(fields['route']),
                        arguments: fields['arguments'],
                        status: null,
                        code: null,
                        message: null,
                        truncated: false,
                        approvalId: null
                    }
                ]
            };
        case 'result':
            return {
                ...now,
                calls: now.calls.map((each) => (each.id === fields['id'] ? { ...each, ...fields } : each))
            };
        case 'error':
            toastBad(String(fields['message'] ?? t('The answer failed')));
            return now;
        default:
            return now;
    }
}
