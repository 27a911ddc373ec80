/** Parameters of a page's requests, read with distrust: the page is code of a plugin. */
import type { Params } from '../generated/operations.ts';
import { BridgeError } from './answer.ts';

/** A request of an operation. */
export interface PageRequest {
    readonly operationId: string;
    readonly path: Params;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: unknown;
    /** `If-Match`, where it is asked for. */
    readonly headers: Readonly<Record<string, string>>;
}

/** Reads the parameters of a request. @throws BridgeError WRONG_PARAMS */
export function requestOf({
    operationId,
    path,
    query,
    body,
    ifMatch
}: Readonly<Record<string, unknown>>): PageRequest {
    const isVersion = typeof ifMatch === 'string' || typeof ifMatch === 'number';
    return {
        operationId: text(operationId, 200),
        path: Object.fromEntries(Object.entries(record(path)).map(([name, value]) => [name, String(value)])),
        query: record(query),
        body,
        headers: isVersion ? { 'if-match': `"${String(ifMatch).replace(/["\r\n]/g, '')}"` } : {}
    };
}

/** An object with names; an empty one for anything else. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** A text of at most so many characters. @throws BridgeError WRONG_PARAMS */
export function text(value: unknown, most: number): string {
    if (typeof value !== 'string' || value.length > most) {
        throw new BridgeError('WRONG_PARAMS', `A text of at most ${most} characters is needed`);
    }
    return value;
}
