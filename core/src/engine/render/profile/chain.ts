/** A profile as the engine's handlers, in the order in which a request reaches them. */
import type { CompileContext, Part } from '../compile/context.ts';
import type { CompiledProfile } from '../compile/dispatch.ts';
import { literal } from '../placeholder.ts';
import { addressRoutes, corsHandlers, forwardAuthRoutes, passwordRoutes, preflightRoutes } from './access.ts';
import { contentRoutes } from './content.ts';
import { headerOperations, responseHandler } from './headers.ts';
import type { Behaviour, Profile } from './profile.ts';
import { emptyPath } from './request.ts';

/** One year, as the preload lists of browsers demand. */
const hstsAge = 31_536_000;

/** Compiles the chain of handlers that all sites of one profile share. It reads nothing but its arguments. */
export const compileProfile = ({ id, behaviour }: Profile, context: CompileContext): CompiledProfile => {
    const page = behaviour.errorPages.find(({ status }) => status === 503);
    return {
        id,
        handle: profileHandlers(behaviour, context),
        pause: page === undefined ? null : htmlAnswer(page.status, page.body)
    };
};

const profileHandlers = (behaviour: Behaviour, context: CompileContext): readonly Part[] => {
    const around = responseHandlers(behaviour);
    const routes = [
        ...httpsRoutes(behaviour, context),
        ...addressRoutes(behaviour),
        ...preflightRoutes(behaviour),
        ...passwordRoutes(behaviour),
        ...forwardAuthRoutes(behaviour),
        ...bodyRoutes(behaviour),
        ...(behaviour.compression
            ? [
                  {
                      handle: [
                          { handler: 'encode', encodings: { gzip: {}, zstd: {} }, prefer: ['zstd', 'gzip'] }
                      ]
                  }
              ]
            : []),
        ...(behaviour.advanced.length === 0 ? [] : [{ handle: behaviour.advanced }]),
        ...contentRoutes(behaviour, context)
    ];

    // Errors are caught inside the handlers that change the answer, so that error pages are changed too.
    if (around.length > 0 || behaviour.errorPages.length > 0 || behaviour.bodyLimitBytes !== null) {
        return [...around, { handler: 'subroute', routes, errors: { routes: errorRoutes(behaviour) } }];
    }

    // The engine builds a subroute for each request, so handlers without a matcher do without one.
    return routes.every((route) => !('match' in route))
        ? routes.flatMap((route) => route['handle'] as readonly Part[])
        : [{ handler: 'subroute', routes }];
};

/** The answer to an error for which the site has no page of its own. */
export const plainError: Part = {
    handle: [
        {
            handler: 'static_response',
            status_code: '{http.error.status_code}',
            headers: { 'Content-Type': ['text/plain; charset=utf-8'], 'Cache-Control': ['no-store'] },
            body: '{http.error.status_code} {http.error.status_text}\n'
        }
    ]
};

const errorRoutes = (behaviour: Behaviour): readonly Part[] => {
    const pages = [
        ...behaviour.errorPages.map((page) => ({
            match: [{ vars: { '{http.error.status_code}': [String(page.status)] } }],
            handle: [htmlAnswer(page.status, page.body)],
            terminal: true
        })),
        plainError
    ];
    if (behaviour.bodyLimitBytes === null) {
        return pages;
    }

    // A proxy reports a body that is too long as a bad gateway, although it is the client's error.
    const tooLong = {
        match: [
            {
                vars_regexp: {
                    '{http.error.message}': { name: 'portico_error', pattern: 'request body too large' }
                }
            }
        ],
        handle: [{ handler: 'error', status_code: 413 }]
    };
    return [{ handle: [{ handler: 'subroute', routes: [tooLong, ...pages], errors: { routes: pages } }] }];
};

const bodyRoutes = ({ bodyLimitBytes }: Behaviour): readonly Part[] =>
    bodyLimitBytes === null
        ? []
        : [
              {
                  match: [
                      {
                          header_regexp: {
                              'Content-Length': { name: 'portico_length', pattern: moreThan(bodyLimitBytes) }
                          }
                      }
                  ],
                  handle: [{ handler: 'error', status_code: 413 }]
              },
              { handle: [{ handler: 'request_body', max_size: bodyLimitBytes }] }
          ];

/** A regular expression that matches every decimal number above this one. */
const moreThan = (limit: number): string => {
    const text = String(limit);
    const greater = [...text].flatMap((digit, index) =>
        digit === '9'
            ? []
            : [`${text.slice(0, index)}[${Number(digit) + 1}-9]\\d{${text.length - index - 1}}`]
    );
    return `^0*(?:${[...greater, `[1-9]\\d{${text.length},}`].join('|')})$`;
};

const htmlAnswer = (status: number, body: string): Part => ({
    handler: 'static_response',
    status_code: status,
    headers: { 'Content-Type': ['text/html; charset=utf-8'] },
    body: literal(body)
});

/** The outermost handler comes first and changes the answer last, so that the user's own operations win. */
const responseHandlers = (behaviour: Behaviour): readonly Part[] => {
    const own = headerOperations(behaviour.headers.response);
    return [
        ...(own === null ? [] : [responseHandler(own)]),
        ...corsHandlers(behaviour),
        ...(behaviour.securityHeaders
            ? [
                  responseHandler({
                      set: { 'X-Content-Type-Options': ['nosniff'] },
                      delete: ['Server', 'X-Powered-By']
                  }),
                  // A stricter value of the application itself stays.
                  responseHandler(
                      { set: { 'X-Frame-Options': ['SAMEORIGIN'] } },
                      { headers: { 'X-Frame-Options': null } }
                  ),
                  responseHandler(
                      { set: { 'Referrer-Policy': ['strict-origin-when-cross-origin'] } },
                      { headers: { 'Referrer-Policy': null } }
                  )
              ]
            : []),
        ...(behaviour.hsts
            ? [
                  {
                      handler: 'subroute',
                      routes: [
                          {
                              match: [{ protocol: 'https' }],
                              handle: [
                                  responseHandler({
                                      set: { 'Strict-Transport-Security': [`max-age=${hstsAge}`] }
                                  })
                              ]
                          }
                      ]
                  }
              ]
            : [])
    ];
};

/** An ACME challenge for the site's own certificate client is answered over http, where it is asked, and not redirected. */
const httpsRoutes = (behaviour: Behaviour, { settings }: CompileContext): readonly Part[] =>
    !behaviour.forceHttps
        ? []
        : [
              {
                  match: [{ protocol: 'http', ...emptyPath }],
                  handle: [redirectTo(`${httpsOrigin(settings.httpsPort)}/`)],
                  terminal: true
              },
              {
                  match: [{ protocol: 'http', not: [{ path: ['/.well-known/acme-challenge/*'] }] }],
                  handle: [redirectTo(`${httpsOrigin(settings.httpsPort)}{http.request.uri}`)]
              }
          ];

const httpsOrigin = (port: number): string => `https://{http.request.host}${port === 443 ? '' : `:${port}`}`;

const redirectTo = (location: string): Part => ({
    handler: 'static_response',
    status_code: 308,
    headers: { Location: [location] }
});
