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

const none: Readonly<Record<string, string>> = Object.freeze({});

/** Headers that a reply may carry. */
export function allowedHeaders(headers: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
    const entries = Object.entries(headers);
    if (entries.length === 0) {
        return none;
    }
    return Object.fromEntries(
        entries
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

/**
 * What a page of a plugin may load: files of the plugin's own package, and the scripts that the host writes into its document. It reaches
 * no other address, so it cannot send away what it is shown.
 */
const framePolicy = (scripts: readonly string[]): string =>
    [
        'sandbox allow-scripts',
        "default-src 'none'",
        ["script-src 'self'", ...scripts.map((hash) => `'${hash}'`)].join(' '),
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'self'"
    ].join('; ');

const sandboxed = Object.freeze({
    'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'"
});
const openToFrames = Object.freeze({
    ...sandboxed,
    'cross-origin-resource-policy': 'cross-origin',
    'access-control-allow-origin': '*'
});

/** What of a plugin's paths is more than an answer to the API. */
export interface PublicPaths {
    /** Paths of documents that are shown in frames, each with the hashes of its inline scripts, such as `sha256-…`. */
    readonly pages: ReadonlyMap<string, readonly string[]>;
    /** Beginnings of paths whose files every frame may load: static files of the package. They are public. */
    readonly files: readonly string[];
}

/**
 * Headers of every answer below a plugin's path. They give a plugin's page no origin, so the page cannot act as the user who opens it.
 * A page without an origin may read the files of the package only when these say so.
 */
export function sandboxHeaders(
    { pages, files }: PublicPaths,
    path: string
): Readonly<Record<string, string>> {
    const isShared = files.some((beginning) => path.startsWith(beginning));
    const scripts = pages.get(path);
    if (scripts === undefined) {
        return isShared ? openToFrames : sandboxed;
    }
    return {
        'content-security-policy': framePolicy(scripts),
        'cross-origin-resource-policy': 'cross-origin',
        'referrer-policy': 'no-referrer',
        ...(isShared ? { 'access-control-allow-origin': '*' } : {})
    };
}
