import type { LoadBalancing } from '../../site.ts';
import type { CompileContext, Part } from '../compile/context.ts';
import { literal } from '../placeholder.ts';
import { headerOperations } from './headers.ts';
import type { Behaviour } from './profile.ts';
import { errorResponses, locationProxy, siteProxy, spread, timeoutFields } from './proxy.ts';
import { emptyPath, withoutForged } from './request.ts';

/** How requests are spread over several FastCGI servers. */
const byWeight: LoadBalancing = { policy: 'weighted', key: null, retries: 0, tryDurationSeconds: 0 };

/** The site's own handlers by its type, locations first. */
export const contentRoutes = (behaviour: Behaviour, context: CompileContext): readonly Part[] => {
    const locations = locationRoutes(behaviour, context);
    switch (behaviour.type) {
        case 'proxy':
            return [...locations, { handle: [siteProxy(behaviour, context)] }];
        case 'redirect':
            return [...locations, ...redirectRoutes(behaviour)];
        case 'static':
            return [...locations, ...staticRoutes(behaviour)];
        case 'php':
            return [...locations, ...phpRoutes(behaviour, context)];
    }
};

const locationRoutes = (behaviour: Behaviour, context: CompileContext): readonly Part[] =>
    behaviour.locations
        .map((location) => ({ ...location, prefix: decoded(location.path).replace(/\/+$/, '') }))
        .sort((a, b) => b.prefix.length - a.prefix.length || (a.prefix < b.prefix ? -1 : 1))
        .map(({ prefix, upstream, stripPrefix }) => ({
            ...(prefix !== '' && { match: [{ path_regexp: { pattern: `^${quoted(prefix)}(?:/|$)` } }] }),
            handle: [
                ...(stripPrefix && prefix !== ''
                    ? [{ handler: 'rewrite', strip_path_prefix: literal(prefix) }]
                    : []),
                locationProxy(upstream, behaviour, context)
            ]
        }));

/** The engine compares paths after decoding. */
const decoded = (path: string): string => {
    try {
        return decodeURIComponent(path);
    } catch {
        return path;
    }
};

/** Hexadecimal, so that neither the regular expression nor anything before it sees a brace. */
const quoted = (text: string): string =>
    text.replace(/[^A-Za-z0-9/_-]/gu, (character) => `\\x{${(character.codePointAt(0) ?? 0).toString(16)}}`);

const redirectRoutes = ({ redirect }: Behaviour): readonly Part[] => {
    if (redirect === null) {
        return [];
    }

    const answer = (location: string): Part => ({
        handler: 'static_response',
        status_code: redirect.code,
        headers: { Location: [location] }
    });
    if (!redirect.keepPath) {
        return [{ handle: [answer(literal(redirect.to))] }];
    }

    const [withoutFragment = ''] = redirect.to.split('#', 1);
    const at = withoutFragment.indexOf('?');
    const base = literal((at < 0 ? withoutFragment : withoutFragment.slice(0, at)).replace(/\/+$/, ''));
    const query = at < 0 ? '' : literal(withoutFragment.slice(at + 1));
    const uri = '{http.request.uri}';
    const suffix = query === '' ? '' : `?${query}`;
    // A request for `http:.evil.test` has no path, and a URI that would go on with the name of the host.
    const withoutPath = { match: [emptyPath], handle: [answer(`${base}/${suffix}`)], terminal: true };
    if (query === '') {
        return [withoutPath, { handle: [answer(base + uri)] }];
    }

    // The address has a query of its own, so the query of the request is appended to it.
    return [
        withoutPath,
        {
            match: [{ vars: { '{http.request.uri.query}': [''] } }],
            handle: [{ handler: 'rewrite', uri: '?' }, answer(`${base}${uri}?${query}`)]
        },
        {
            handle: [
                { handler: 'vars', portico_query: '{http.request.uri.query}' },
                { handler: 'rewrite', uri: '?' },
                answer(`${base}${uri}?${query}&{http.vars.portico_query}`)
            ]
        }
    ];
};

/** Files and folders whose name begins with a dot are not for visitors: `.env`, `.git`. `.well-known` at the root is (RFC 8615). */
const withoutDotFiles: Part = {
    match: [
        {
            path_regexp: { pattern: '/\\.' },
            not: [{ path_regexp: { pattern: '^/\\.well-known(?:/(?:[^./][^/]*)?)*$' } }]
        }
    ],
    handle: [{ handler: 'error', status_code: 404 }]
};

const staticRoutes = (behaviour: Behaviour): readonly Part[] => {
    if (behaviour.static === null) {
        return [];
    }

    const { browse, spaFallback } = behaviour.static;
    const root = literal(behaviour.static.root);
    const index = indexNames(behaviour.static.index, 'index.html');
    const request = headerOperations(behaviour.headers.request);
    const path = '{http.request.uri.path}';
    const page = index[0] ?? '';
    return [
        withoutDotFiles,
        ...(request === null ? [] : [{ handle: [{ handler: 'headers', request }] }]),
        ...(spaFallback
            ? [
                  {
                      match: [
                          {
                              not: [
                                  {
                                      file: {
                                          root,
                                          try_files: [
                                              path,
                                              ...index.map((name) => `${path}/${name}`),
                                              ...(browse ? [`${path}/`] : [])
                                          ]
                                      }
                                  }
                              ]
                          }
                      ],
                      handle: [{ handler: 'rewrite', uri: `/${page}` }]
                  }
              ]
            : []),
        { handle: [{ handler: 'file_server', root, index_names: index, ...(browse && { browse: {} }) }] }
    ];
};

/** A front controller: existing files are served, and the first index file answers everything else. */
const phpRoutes = (behaviour: Behaviour, context: CompileContext): readonly Part[] => {
    if (behaviour.php === null) {
        return [];
    }

    const root = literal(behaviour.php.root);
    const index = indexNames(behaviour.php.index, 'index.php');
    const request = withoutForged(headerOperations(behaviour.headers.request));
    const path = '{http.request.uri.path}';
    const split = { split_path: ['.php'] };
    const { fastcgi, upstreams = [] } = behaviour.php;
    return [
        withoutDotFiles,
        {
            // Without the final slash of a folder, all relative addresses in its page would be wrong.
            match: [
                { file: { root, try_files: index.map((name) => `${path}/${name}`) }, not: [{ path: ['*/'] }] }
            ],
            handle: [
                { handler: 'rewrite', uri: '{http.request.uri.path}/' },
                {
                    handler: 'static_response',
                    status_code: 308,
                    headers: { Location: ['{http.request.uri}'] }
                }
            ]
        },
        {
            match: [
                {
                    file: {
                        root,
                        try_files: [path, ...index.map((name) => `${path}/${name}`), index[0] ?? ''],
                        ...split
                    }
                }
            ],
            handle: [{ handler: 'rewrite', uri: '{http.matchers.file.relative}' }]
        },
        {
            match: [{ path: ['*.php'] }],
            handle: [
                {
                    handler: 'reverse_proxy',
                    ...spread(
                        fastcgi === undefined ? upstreams : [{ address: fastcgi, weight: 1 }],
                        upstreams.length > 1 ? byWeight : null,
                        context
                    ),
                    transport: { protocol: 'fastcgi', root, ...split, ...timeoutFields(behaviour.timeouts) },
                    // The header `Proxy` would reach the script as HTTP_PROXY, which many libraries use.
                    headers: {
                        request: {
                            ...request,
                            // Scripts read `X_Real_IP` as `X-Real-IP`: a header with an underscore anywhere does not get through.
                            delete: [...((request['delete'] as string[] | undefined) ?? []), 'Proxy', '*_*']
                        }
                    },
                    ...(context.features.streamCloseDelay && { stream_close_delay: '10m' }),
                    ...errorResponses(behaviour)
                }
            ]
        },
        { handle: [{ handler: 'file_server', root, index_names: index }] }
    ];
};

const indexNames = (names: readonly string[], fallback: string): readonly string[] =>
    (names.length === 0 ? [fallback] : names).map(literal);
