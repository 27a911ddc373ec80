/** The origin under which clients know the panel: metadata and tokens of OAuth are for one origin. */

/**
 * The origin of `panel.url`; while that is not set, what the client itself says in `Host`. What a name is trusted for is then no more than
 * that the client reached the panel by it.
 */
export function panelOrigin(panelUrl: string | null, host: string | undefined): string {
    return (
        (panelUrl === null ? null : URL.parse(panelUrl)?.origin) ??
        URL.parse(`http://${host ?? 'localhost'}`)?.origin ??
        'http://localhost'
    );
}
