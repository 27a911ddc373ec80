/** Headers of a plugin's answers. Headers that affect other pages or the connection are removed, and the host sets its own headers last. */

const stripped = new Set([
    'set-cookie',
    'service-worker-allowed',
    'clear-site-data',
    'refresh',
    'content-length',
    'transfer-encoding',
    'connection',
    'content-security-policy',
    'content-security-policy-report-only',
    'strict-transport-security',
    'x-request-id',
    'cross-origin-resource-policy',
    'cross-origin-opener-policy',
    'cross-origin-embedder-policy',
    'public-key-pins',
    'report-to',
    'reporting-endpoints',
    'nel',
    'alt-svc',
    'www-authenticate',
    'proxy-authenticate',
    'permissions-policy'
]);

/** Headers that a reply may carry. */
export function allowedHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
    return Object.fromEntries(
        Object.entries(headers)
            .map(([name, value]) => [name.toLowerCase(), String(value)] as const)
            .filter(
                ([name, value]) =>
                    /^[a-z0-9-]+$/.test(name) &&
                    !/[\r\n\0]/.test(value) &&
                    !stripped.has(name) &&
                    !name.startsWith('access-control-')
            )
    );
}

/** What a page of a plugin may load: files of the plugin's own package. It reaches no other address, so it cannot send away what it is shown. */
const framePolicy = [
    'sandbox allow-scripts',
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'"
].join('; ');

/**
 * Headers of every answer below a plugin's path. They give a plugin's page no origin, so the page cannot act as the user who opens it.
 * A page without an origin may read the files of the package only when these say so.
 *
 * @param assets - the path that the static files of the package are below; they are public
 */
export function sandboxHeaders(
    entries: ReadonlySet<string>,
    path: string,
    assets: string
): Readonly<Record<string, string>> {
    const shared = path.startsWith(assets) ? { 'access-control-allow-origin': '*' } : {};
    return entries.has(path)
        ? {
              'content-security-policy': framePolicy,
              'cross-origin-resource-policy': 'cross-origin',
              'referrer-policy': 'no-referrer',
              ...shared
          }
        : {
              'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
              ...(path.startsWith(assets) ? { 'cross-origin-resource-policy': 'cross-origin' } : {}),
              ...shared
          };
}
