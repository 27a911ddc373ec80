/** Headers of a plugin's answers: what would let an answer act beyond itself never leaves, and what the host decides is set last. */

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

/** Of everything below a plugin's path: a page of a plugin has no origin, so it cannot act as whoever looks at it. */
export function sandboxHeaders(entries: ReadonlySet<string>, path: string): Readonly<Record<string, string>> {
    return entries.has(path)
        ? {
              'content-security-policy': "sandbox allow-scripts allow-forms; frame-ancestors 'self'",
              'cross-origin-resource-policy': 'cross-origin'
          }
        : { 'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'" };
}
