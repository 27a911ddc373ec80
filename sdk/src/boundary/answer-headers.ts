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

/** Headers of every answer below a plugin's path. They give a plugin's page no origin, so the page cannot act as the user who opens it. */
export function sandboxHeaders(entries: ReadonlySet<string>, path: string): Readonly<Record<string, string>> {
    return entries.has(path)
        ? {
              'content-security-policy': "sandbox allow-scripts allow-forms; frame-ancestors 'self'",
              'cross-origin-resource-policy': 'cross-origin'
          }
        : { 'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'" };
}
