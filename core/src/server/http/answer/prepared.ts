/** Lists whose JSON is ready, or which the client has already. The lists that are read most use them, to save entities and serialisation. */

/** One page as text with the tag of its content. */
export interface PreparedList {
    /** Names the content: the same tag, the same page. */
    readonly tag: string;
    readonly total?: number;
    readonly next?: string | null;
    /** The JSON array; asked for only when the client does not have this tag. */
    json(): string;
}

/** The answer that carries a prepared list. */
export interface Prepared {
    readonly '~portico': 'prepared';
    readonly list: PreparedList;
}

/** Answers with a prepared list. */
export function prepared(list: PreparedList): Prepared {
    return { '~portico': 'prepared', list };
}

/** Tells a prepared list from other answers. */
export function isPrepared(value: unknown): value is Prepared {
    return (
        typeof value === 'object' &&
        value !== null &&
        (value as Record<string, unknown>)['~portico'] === 'prepared'
    );
}
