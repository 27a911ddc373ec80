/** How a field that was sent meets the one that is stored. */

/** Merges one field: a field that was not sent keeps its value, null clears it, anything else replaces it as a whole. */
export function merge<T, R>(sent: T | null | undefined, kept: R, cleared: R, normalise: (value: T) => R): R {
    return sent === undefined ? kept : sent === null ? cleared : normalise(sent);
}

/** {@link merge} for a value that is stored as it was sent. */
export function mergePlain<T>(sent: T | null | undefined, kept: T, cleared: T): T {
    return merge(sent, kept, cleared, (value) => value);
}
