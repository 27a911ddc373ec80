/** Which events a channel gets: `*` is every event, `certificate.*` every one that starts with `certificate.`, any other pattern only that event. */

/** The form of one pattern. */
export const eventPattern = /^(?:\*|[a-z][a-zA-Z0-9-]*(?:\.[a-zA-Z0-9-]+)*(?:\.\*)?)$/;

/** Whether any of the patterns matches an event. */
export function matches(patterns: readonly string[], event: string): boolean {
    return patterns.some(
        (pattern) =>
            pattern === '*' ||
            pattern === event ||
            (pattern.endsWith('.*') && event.startsWith(pattern.slice(0, -1)))
    );
}
