/** Whether a browser opens a page, or a page asks for one of its parts. */

/**
 * Says whether a request opens a page.
 *
 * A browser says so itself in `Sec-Fetch-Mode` (Fetch Metadata), but not over plain HTTP to another machine. There its wish for HTML tells.
 *
 * @param mode - `Sec-Fetch-Mode`
 * @param accept - `Accept`
 */
export function isNavigation(mode: string | null | undefined, accept: string | null | undefined): boolean {
    return mode === null || mode === undefined ? /^\s*text\/html\b/i.test(accept ?? '') : mode === 'navigate';
}
