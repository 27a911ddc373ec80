/** Patterns of events: `*` is any text. */

/** A pattern as a regular expression. */
export function patternOf(event: string): RegExp {
    const literal = event.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^\\n]*');
    return new RegExp(`^${literal}$`);
}
