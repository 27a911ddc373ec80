/** A generation's contract as its partners call it through the panel. */
import type { Guest } from '@portico/sdk/host';

import type { Handles } from '../api/handles.ts';
import type { Provider } from './contracts.ts';

/** What the provider of one generation needs. */
export interface ProviderOptions {
    readonly methods: readonly string[];
    readonly guest: Guest;
    readonly handles: Handles;
    /** Aborts when the generation ends. */
    readonly ending: AbortSignal;
    /** Awaited before each call, since any method may make a change: only the plugin knows. */
    accept(): Promise<void>;
}

/** The provider of a generation's contract. The caller's handle lasts until the answer, or until the end of a series. */
export function providerOf({ methods, guest, handles, ending, accept }: ProviderOptions): Provider {
    return {
        methods: new Set(methods),
        async call({ method, input, plugin, held, signal }) {
            await accept();
            const asker = held === null ? null : handles.begin({ ...held, audit: null });
            const until = signal === null ? ending : AbortSignal.any([signal, ending]);
            const end = (): void => {
                if (asker !== null) {
                    handles.end(asker.handle);
                }
            };
            let series: AsyncIterable<unknown> | undefined;
            try {
                const answer = await guest.contract({ method, input, plugin, asker, signal: until });
                series = answer.series;
                return series === undefined ? answer : { series: lasting(series, end) };
            } finally {
                if (series === undefined) {
                    end();
                }
            }
        }
    };
}

async function* lasting<T>(series: AsyncIterable<T>, end: () => void): AsyncGenerator<T> {
    try {
        yield* series;
    } finally {
        end();
    }
}
