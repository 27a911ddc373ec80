/** An answer whose data is JSON text already: a plugin's guest runtime wrote it. */
import type { JsonAnswer } from '@portico/sdk/host';

/** The answer that carries ready text. */
export interface Serialised extends JsonAnswer {
    readonly '~portico': 'serialised';
}

/** Answers with data that is JSON already. */
export function serialised({ status, message, headers, json }: JsonAnswer): Serialised {
    return { '~portico': 'serialised', status, message, headers, json };
}

/** Tells ready text from other answers. */
export function isSerialised(value: unknown): value is Serialised {
    return (
        typeof value === 'object' &&
        value !== null &&
        (value as Record<string, unknown>)['~portico'] === 'serialised'
    );
}
