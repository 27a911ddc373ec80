/** What a request may not say about itself. */
import type { Part } from '../compile/context.ts';

/** Matches a request whose target has no path, such as `http:opaque`: its URI does not begin with a slash. */
export const emptyPath: Part = { vars: { '{http.request.uri.path}': [''] } };

/**
 * Headers by which proxies and networks for content tell an application who asks, and where it is reached. A visitor may not send them. The engine
 * itself sets `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
 */
const forged = [
    'CF-Connecting-IP',
    'CF-Connecting-IPv6',
    'Fastly-Client-IP',
    'Forwarded',
    'True-Client-IP',
    'X-Client-IP',
    'X-Cluster-Client-IP',
    'X-Forwarded-Port',
    'X-Forwarded-Prefix',
    'X-Forwarded-Scheme',
    'X-Forwarded-Server',
    'X-Forwarded-Ssl'
];
const realIp = 'X-Real-IP';

/** Operations on a request's headers that also remove what only a proxy may say, but for what the site itself sets. */
export const withoutForged = (operations: Part | null): Part => {
    const {
        add,
        set,
        delete: removed
    } = (operations ?? {}) as {
        readonly add?: Readonly<Record<string, readonly string[]>>;
        readonly set?: Readonly<Record<string, readonly string[]>>;
        readonly delete?: readonly string[];
    };
    const names = new Set([...forged, realIp].map((name) => name.toLowerCase()));
    const isForged = ([name]: readonly [string, unknown]): boolean => names.has(name.toLowerCase());
    // What the site adds replaces what the visitor sent.
    const own = Object.entries(add ?? {});
    const added = own.filter((entry) => !isForged(entry));
    const given = { ...set, ...Object.fromEntries(own.filter(isForged)) };
    const said = new Set([...Object.keys(given), ...(removed ?? [])].map((name) => name.toLowerCase()));
    return {
        ...(added.length > 0 && { add: Object.fromEntries(added) }),
        set: {
            ...given,
            ...(!said.has(realIp.toLowerCase()) && { [realIp]: ['{http.request.remote.host}'] })
        },
        delete: [...(removed ?? []), ...forged.filter((name) => !said.has(name.toLowerCase()))]
    };
};
