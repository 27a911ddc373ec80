/** What happens at the engine, as it says it. */
import type { Engine } from '../engine/engine.ts';
import { readJsonLines } from './frames.ts';

/** An event of the engine; `at` is RFC 3339. */
export interface EngineEvent {
    readonly at: string;
    readonly type: string;
    readonly action: string;
    readonly id: string;
    readonly name: string;
}

interface Said {
    readonly Type: string;
    readonly Action: string;
    readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
    readonly time?: number;
    readonly timeNano?: number;
}

/** Reads the engine's events. */
export class Events {
    readonly #engine: Engine;

    constructor(engine: Engine) {
        this.#engine = engine;
    }

    /** Events from now, or from a time, on. What a command was, is left out: it may hold a secret. */
    async read({
        types,
        since,
        signal
    }: {
        readonly types: readonly string[];
        readonly since?: string | undefined;
        readonly signal: AbortSignal;
    }): Promise<AsyncIterable<EngineEvent>> {
        const response = await this.#engine.open('GET', '/events', {
            query: {
                filters: types.length === 0 ? undefined : JSON.stringify({ type: types }),
                since: since === undefined ? undefined : String(Date.parse(since) / 1_000)
            },
            signal,
            // The head comes with the first event on some engines.
            patienceMs: 0
        });
        return (async function* events() {
            try {
                for await (const said of readJsonLines<Said>(response)) {
                    yield eventOf(said);
                }
            } catch (error) {
                if (!signal.aborted) {
                    throw error;
                }
            } finally {
                response.destroy();
            }
        })();
    }
}

function eventOf({ Type, Action, Actor, time = 0, timeNano }: Said): EngineEvent {
    return {
        at: new Date(timeNano === undefined ? time * 1_000 : Math.floor(timeNano / 1_000_000)).toISOString(),
        type: Type,
        action: Action.split(':', 1)[0] ?? Action,
        id: Actor?.ID ?? '',
        name: Actor?.Attributes?.['name'] ?? ''
    };
}
