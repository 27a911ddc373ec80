/** Asks the panel, a moment after the last change, whether it would take a host as it is in the form. */
import { useEffect, useState } from 'preact/hooks';

import { call } from '../../../api/client.ts';
import { ApiFailure } from '../../../api/failure.ts';

/** What the panel says. */
export type Verdict =
    | { readonly state: 'none' | 'asking' }
    | { readonly state: 'good'; readonly reloads: boolean }
    | { readonly state: 'bad'; readonly failure: ApiFailure };

const pauseMs = 400;

/** Follows the body of a write. Null: there is nothing to ask. @param path - of the validating route */
export function useValidation(path: string, body: unknown): Verdict {
    const [verdict, setVerdict] = useState<Verdict>({ state: 'none' });
    const text = body === null ? null : JSON.stringify(body);
    useEffect(() => {
        if (text === null) {
            setVerdict({ state: 'none' });
            return undefined;
        }
        const controller = new AbortController();
        const ask = (): void => {
            setVerdict((before) => (before.state === 'none' ? { state: 'asking' } : before));
            call<{ reload: boolean }>('POST', path, {
                body: JSON.parse(text) as unknown,
                signal: controller.signal
            }).then(
                ({ data }) => setVerdict({ state: 'good', reloads: data.reload }),
                (error: unknown) => {
                    if (error instanceof ApiFailure && !controller.signal.aborted) {
                        setVerdict({ state: 'bad', failure: error });
                    }
                }
            );
        };
        const timer = setTimeout(ask, pauseMs);
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [path, text]);
    return verdict;
}
