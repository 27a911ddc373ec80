/** Who may use a site: rules for addresses, passwords, forward authentication, and browsers of other origins (CORS). */
import type { Part } from '../compile/context.ts';
import { literal } from '../placeholder.ts';
import type { Behaviour } from './profile.ts';
import { httpTransport } from './proxy.ts';
import { withoutForged } from './request.ts';
import { upstreamAddress } from './upstream.ts';

/** Addresses come first, so that a denied client never sees a password prompt. */
export const addressRoutes = ({ access }: Behaviour): readonly Part[] => {
    const refuse = [{ handler: 'error', status_code: 403 }];
    return [
        ...(access.deny.length > 0
            ? [{ match: [{ remote_ip: { ranges: access.deny } }], handle: refuse }]
            : []),
        ...(access.allow.length > 0
            ? [{ match: [{ not: [{ remote_ip: { ranges: access.allow } }] }], handle: refuse }]
            : [])
    ];
};

/** Asks for user name and password, where the site has any. */
export const passwordRoutes = ({ access }: Behaviour): readonly Part[] =>
    access.basicAuth.length === 0
        ? []
        : [
              {
                  handle: [
                      {
                          handler: 'authentication',
                          providers: {
                              http_basic: {
                                  hash: { algorithm: 'bcrypt' },
                                  accounts: access.basicAuth.map(({ username, hash }) => ({
                                      username: literal(username),
                                      password: Buffer.from(hash).toString('base64')
                                  })),
                                  // bcrypt takes tens of milliseconds by design; without the cache every request pays it.
                                  hash_cache: {}
                              }
                          }
                      }
                  ]
              }
          ];

/** Asks another server. A 2xx answer lets the request on with the headers that it names; any other answer goes to the client. */
export const forwardAuthRoutes = ({ access, timeouts }: Behaviour): readonly Part[] => {
    if (access.forwardAuth === null) {
        return [];
    }

    const { copyHeaders } = access.forwardAuth;
    const { address, uri } = authUrl(access.forwardAuth.url);
    const upstream = upstreamAddress(address);
    // Only the other server may set these headers. Gateways of applications read `_` as `-`, and so `X-Auth_User` as
    // `X-Auth-User`: a header with an underscore anywhere does not get through.
    const strip = copyHeaders.length === 0 ? [] : [...new Set(copyHeaders), '*_*'];
    return [
        ...(strip.length > 0
            ? [{ handle: [{ handler: 'headers', request: { delete: strip } }] }, ...plainConnection]
            : []),
        {
            handle: [
                {
                    handler: 'reverse_proxy',
                    upstreams: [{ dial: upstream.dial }],
                    transport: httpTransport(upstream.scheme, timeouts),
                    rewrite: { method: 'GET', uri },
                    headers: {
                        request: {
                            set: {
                                'X-Forwarded-Method': ['{http.request.method}'],
                                'X-Forwarded-Uri': ['{http.request.uri}']
                            },
                            delete: [...(withoutForged(null)['delete'] as string[]), 'Connection', 'Upgrade']
                        }
                    },
                    handle_response: [
                        {
                            match: { status_code: [2] },
                            routes: copyHeaders.map((name) => ({
                                // A header that the other server did not send is left out, instead of arriving empty.
                                match: [
                                    {
                                        not: [
                                            {
                                                vars: {
                                                    [`{http.reverse_proxy.header.${name}}`]: ['', '<nil>']
                                                }
                                            }
                                        ]
                                    }
                                ],
                                handle: [
                                    {
                                        handler: 'headers',
                                        request: { set: { [name]: [`{http.reverse_proxy.header.${name}}`] } }
                                    }
                                ]
                            }))
                        }
                    ]
                }
            ]
        }
    ];
};

/**
 * `Connection` names headers that end at the next proxy: a visitor could name those that the other server set, and they would be removed
 * again. What is left of it is the wish for another protocol.
 */
const plainConnection: readonly Part[] = [
    {
        match: [{ header: { Connection: ['*'] } }],
        handle: [
            {
                handler: 'subroute',
                routes: [
                    {
                        match: [
                            {
                                header_regexp: {
                                    Connection: { pattern: '(?i)(?:^|,)\\s*upgrade\\s*(?:,|$)' }
                                }
                            }
                        ],
                        handle: [
                            { handler: 'vars', portico_upgrade: 'yes' },
                            { handler: 'headers', request: { set: { Connection: ['Upgrade'] } } }
                        ]
                    },
                    {
                        match: [{ not: [{ vars: { portico_upgrade: ['yes'] } }] }],
                        handle: [{ handler: 'headers', request: { delete: ['Connection'] } }]
                    }
                ]
            }
        ]
    }
];

/** `https://auth.example.com/verify?x=1` as an address to dial and what to ask it. The engine encodes the path itself, and leaves the query. */
const authUrl = (text: string): { readonly address: string; readonly uri: string } => {
    const url = new URL(text);
    const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
    return {
        address: `${url.protocol}//${url.hostname}:${port}`,
        uri: `${literal(decodeURIComponent(url.pathname))}${url.search === '' ? '?' : url.search.replaceAll('{', '%7B').replaceAll('}', '%7D')}`
    };
};

const origin = '{http.request.header.Origin}';

/** The handlers around the answer. They name the request's origin if it is on the list, and remove the upstream's own CORS headers. */
export const corsHandlers = ({ cors }: Behaviour): readonly Part[] => {
    if (cors === null) {
        return [];
    }

    const isForAll = cors.origins.includes('*');
    return [
        allowOrigin(cors, isForAll),
        {
            handler: 'headers',
            response: {
                ...(!isForAll && { add: { Vary: ['Origin'] } }),
                delete: ['Access-Control-Allow-Origin', 'Access-Control-Allow-Credentials'],
                deferred: true
            }
        }
    ];
};

/** Answers preflights, but no other OPTIONS request. */
export const preflightRoutes = ({ cors }: Behaviour): readonly Part[] => {
    if (cors === null) {
        return [];
    }

    const preflight = {
        method: ['OPTIONS'],
        header: { Origin: ['*'], 'Access-Control-Request-Method': ['*'] }
    };
    const headers = {
        ...(cors.methods.length > 0 && {
            'Access-Control-Allow-Methods': [literal(cors.methods.join(', '))]
        }),
        ...(cors.headers.length > 0 && {
            'Access-Control-Allow-Headers': [literal(cors.headers.join(', '))]
        }),
        'Access-Control-Max-Age': [String(cors.maxAgeSeconds)]
    };
    const allowed = cors.origins.includes('*')
        ? preflight
        : { ...preflight, vars: { [origin]: cors.origins.map(literal) } };
    return [
        { match: [allowed], handle: [{ handler: 'static_response', status_code: 204, headers }] },
        { match: [preflight], handle: [{ handler: 'static_response', status_code: 204 }] }
    ];
};

const allowOrigin = (cors: NonNullable<Behaviour['cors']>, isForAll: boolean): Part => {
    const headers = (set: Readonly<Record<string, readonly string[]>>): Part => ({
        handler: 'headers',
        response: { set, deferred: true }
    });
    if (isForAll) {
        return headers({ 'Access-Control-Allow-Origin': ['*'] });
    }

    return {
        handler: 'subroute',
        routes: [
            {
                match: [{ vars: { [origin]: cors.origins.map(literal) } }],
                handle: [
                    headers({
                        'Access-Control-Allow-Origin': [origin],
                        ...(cors.credentials && { 'Access-Control-Allow-Credentials': ['true'] })
                    })
                ]
            }
        ]
    };
};
