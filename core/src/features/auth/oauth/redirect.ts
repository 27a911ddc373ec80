/** Where a client may have its answer sent. An answer holds a code, so the address is compared as text, never by parts (RFC 9700, section 2.1). */

/** `http` only reaches a client on the same machine, whose port changes from start to start (RFC 8252, section 7.3). */
const loopback = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?(?=[/?]|$)/;
/** Schemes of editors and desktop clients that lack the dot that RFC 8252, section 7.1, asks for. */
const knownApps = new Set(['claude', 'cursor', 'vscode', 'vscode-insiders', 'windsurf', 'zed']);
/** A name turned around, such as `com.example.app`. Everything else may be a scheme that a browser or the system gives a meaning to. */
const ownedScheme = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+$/;

/** What is wrong with a redirect URI; null when a client may have it. */
export function faultOfRedirect(uri: string): string | null {
    const url = /^[\x21-\x7e]{1,2048}$/.test(uri) && !uri.includes('#') ? URL.parse(uri) : null;
    if (url === null || url.username !== '' || url.password !== '') {
        return 'must be an absolute URI without a fragment and without a user name';
    }
    const scheme = url.protocol.slice(0, -1);
    return scheme === 'https' || loopback.test(uri) || knownApps.has(scheme) || ownedScheme.test(scheme)
        ? null
        : 'must be https, http on this machine (127.0.0.1, [::1], localhost), or a scheme of an app';
}

/** Whether a redirect URI is one of those that a client registered. The port of a loopback address may differ. */
export function isRegistered(registered: readonly string[], asked: string): boolean {
    return registered.some(
        (uri) => uri === asked || (loopback.test(asked) && portless(uri) === portless(asked))
    );
}

/** The redirect URI with parameters added to its query. */
export function redirectTo(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
    const given = Object.entries(parameters).filter(
        (each): each is [string, string] => each[1] !== undefined
    );
    return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(given)}`;
}

function portless(uri: string): string {
    return uri.replace(loopback, (origin) => origin.replace(/:\d+$/, ''));
}
