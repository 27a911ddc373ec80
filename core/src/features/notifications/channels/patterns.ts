/** Which events a channel hears of: `*` is every one, `certificate.*` all that begin with `certificate.`, anything else that very event. */

/** Of one pattern. */
export const eventPattern = /^(?:\*|[a-z][a-zA-Z0-9-]*(?:\.[a-zA-Z0-9-]+)*(?:\.\*)?)$/;

export function matches(patterns: readonly string[], event: string): boolean {
    return patterns.some(
        (pattern) =>
            pattern === '*' ||
            pattern === event ||
            (pattern.endsWith('.*') && event.startsWith(pattern.slice(0, -1)))
    );
}
