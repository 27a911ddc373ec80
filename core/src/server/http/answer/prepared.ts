/** A list whose text is ready, or that the client has already: the way of the hot lists, past entities and serialisation. */

/** One page as text with the tag of its content. */
export interface PreparedList {
    /** Names the content: the same tag, the same page. */
    readonly tag: string;
    readonly total?: number;
    readonly next?: string | null;
    /** The JSON array; asked for only when the client does not have this tag. */
    json(): string;
}

/** Answers with a prepared list. */
export function prepared(list: PreparedList): {
    readonly '~portico': 'prepared';
    readonly list: PreparedList;
} {
    return { '~portico': 'prepared', list };
}

/** Tells a prepared list from other answers. */
export function isPrepared(value: unknown): value is { readonly list: PreparedList } {
    return (
        typeof value === 'object' &&
        value !== null &&
        (value as Record<string, unknown>)['~portico'] === 'prepared'
    );
}
