/** Finds the profile for a request's Host: one look-up in the file table, then a few comparisons. */
import { fragmentHandlers } from '../../fragments/fragments.ts';
import type { CompileContext, Part } from './context.ts';

/** A plain lower-case DNS name; no other Host is looked up. Groups: the name, and the part behind its first label. */
const plainName = '([a-z0-9_-]+(?:\\.([a-z0-9_-]+(?:\\.[a-z0-9_-]+)*))?)';

/** The path at which the engine asks itself whether it may get a certificate for a name. */
export const permissionPath = '/.portico/permission';

/** More profiles than this are first told apart by one more digit of their id. */
const widest = 16;

/** The digits of an id that are captured one by one where there are many profiles. */
const digits = 3;

/** One profile in the engine's terms. */
export interface CompiledProfile {
    readonly id: string;
    readonly handle: readonly Part[];
    /** The handler of the site's own maintenance page; null: the plain page. */
    readonly pause: Part | null;
}

const idOfEntry = '{http.regexp.portico_entry.2}';
const idOfPause = '{http.regexp.portico_pause.1}';

/**
 * The routes of the server that serves all sites. They lie side by side: the engine makes a subroute's handlers anew for each request, and
 * a matcher keeps what it captured also below `not`, so a route that turns requests away captures what the routes behind it read.
 */
export const siteRoutes = (
    profiles: readonly CompiledProfile[],
    context: CompileContext
): readonly Part[] => {
    // Fragments of plugins stand only before hosts that are served, not before the engine's questions to itself.
    const handlers = fragmentHandlers(context.settings);
    return [
        // The sets are tried one after the other, so the look-up finds the captured name.
        {
            match: [{ not: [plainHost] }, { not: [entryOfHost(context)] }],
            handle: [subroute(unknownRoutes(context))],
            terminal: true
        },
        ...(handlers.length === 0 ? [] : [{ handle: handlers }]),
        {
            match: [{ not: [entry('portico_entry', 'on,([a-z]+),([0-9a-f]{16})(?:,([^~]+))?(~.+)?')] }],
            handle: [subroute(pauseRoutes(profiles))],
            terminal: true
        },
        {
            match: [{ protocol: 'https', vars: { '{http.regexp.portico_entry.1}': ['none'] } }],
            handle: [notFound],
            terminal: true
        },
        bridgeRoute(profiles),
        ...dispatch(profiles),
        // The entry names a profile that the configuration lacks. The table is written last, so this should never happen.
        { handle: [answer(503, 'The site is being set up.\n', { 'Retry-After': ['1'] })] }
    ];
};

const plainHost: Part = {
    header_regexp: { Host: { name: 'portico_name', pattern: `^${plainName}(?::[0-9]*)?$` } }
};

/** Sets `http.matchers.file.relative` to `/<folder>/<entry>`. */
const entryOfHost = ({ folders }: CompileContext): Part => {
    const look = '{http.regexp.portico_name.1}';
    return {
        file: {
            root: folders.table,
            // The exact name wins. It is looked up twice, because a rename can happen between listing the folder and opening the file.
            try_files: [
                `/${look}/*`,
                `/${look}/*`,
                '/+.{http.regexp.portico_name.2}/*',
                '/+.{http.regexp.portico_name.2}/*'
            ]
        }
    };
};

/** What a Host gets that is in no entry of the table. */
const unknownRoutes = (context: CompileContext): readonly Part[] => [
    permissionRoute(context),
    {
        // Names are compared literally, so this Host is refused clearly instead of being answered like an unknown site.
        match: [{ header_regexp: { Host: { name: 'portico_spelling', pattern: '[A-Z]|\\.(?::[0-9]*)?$' } } }],
        handle: [
            answer(
                421,
                'Misdirected request: write the host name in lower case and without a dot at its end.\n'
            )
        ],
        terminal: true
    },
    { handle: [notFound] }
];

/** What a site gets whose entry is not `on`. */
const pauseRoutes = (profiles: readonly CompiledProfile[]): readonly Part[] => [
    {
        match: [entry('portico_pause', 'maintenance,[a-z]+,([0-9a-f]{16}).*')],
        handle: [
            subroute([
                ...profiles.flatMap(({ id, pause }) =>
                    pause === null
                        ? []
                        : [
                              {
                                  match: [{ vars: { [idOfPause]: [id] } }],
                                  handle: [{ handler: 'headers', response: { set: retryLater } }, pause],
                                  terminal: true
                              }
                          ]
                ),
                {
                    handle: [
                        answer(503, 'The site is being worked on. Please try again later.\n', retryLater)
                    ]
                }
            ])
        ],
        terminal: true
    },
    { handle: [notFound] }
];

/**
 * A configuration that was replaced answers connections that it had accepted, and does not have the profile of an entry that was written since.
 * It captures the former profile and address, which stand behind the entry for a moment.
 */
const bridgeRoute = (profiles: readonly CompiledProfile[]): Part => ({
    match: [{ not: [{ vars: { '{http.regexp.portico_entry.4}': [''] } }] }],
    handle: [
        subroute([
            {
                match: [{ not: [{ vars: { [idOfEntry]: profiles.map(({ id }) => id) } }] }],
                handle: [
                    subroute([
                        {
                            match: [entry('portico_entry', 'on,([a-z]+),[^~]+~([0-9a-f]{16})(?:,(.+))?')]
                        }
                    ])
                ]
            }
        ])
    ]
});

/** Few profiles are compared one after the other; many are first told apart by the digits of their id. */
const dispatch = (profiles: readonly CompiledProfile[]): readonly Part[] =>
    profiles.length <= widest
        ? profileRoutes(profiles)
        : [
              {
                  match: [
                      {
                          vars_regexp: {
                              [idOfEntry]: {
                                  name: 'portico_digit',
                                  pattern: `^${'([0-9a-f])'.repeat(digits)}`
                              }
                          }
                      }
                  ]
              },
              ...splitRoutes(profiles, 0)
          ];

const splitRoutes = (profiles: readonly CompiledProfile[], depth: number): readonly Part[] => {
    if (profiles.length <= widest || depth === digits) {
        return profileRoutes(profiles);
    }

    const groups = new Map<string, CompiledProfile[]>();
    for (const profile of profiles) {
        const digit = profile.id[depth] ?? '';
        groups.set(digit, [...(groups.get(digit) ?? []), profile]);
    }

    return [...groups].map(([digit, group]) => ({
        match: [{ vars: { [`{http.regexp.portico_digit.${depth + 1}}`]: [digit] } }],
        handle: [subroute(splitRoutes(group, depth + 1))]
    }));
};

const profileRoutes = (profiles: readonly CompiledProfile[]): readonly Part[] =>
    profiles.map(({ id, handle }) => ({
        match: [{ vars: { [idOfEntry]: [id] } }],
        handle,
        terminal: true
    }));

/** The profiles of a configuration that this panel compiled. */
export const compiledProfiles = (config: unknown): readonly CompiledProfile[] => {
    const handles = new Map<string, readonly Part[]>();
    const pauses = new Map<string, Part>();
    const walk = (value: unknown): void => {
        if (typeof value !== 'object' || value === null) {
            return;
        }

        const { match, handle } = value as {
            readonly match?: readonly { readonly vars?: Readonly<Record<string, readonly string[]>> }[];
            readonly handle?: readonly Part[];
        };
        const vars = Array.isArray(match) ? match[0]?.vars : undefined;
        const entryId = vars?.[idOfEntry]?.[0];
        const pauseId = vars?.[idOfPause]?.[0];
        if (entryId !== undefined && handle !== undefined) {
            handles.set(entryId, handle);
        } else if (pauseId !== undefined && handle?.[1] !== undefined) {
            pauses.set(pauseId, handle[1]);
        } else {
            Object.values(value).forEach(walk);
        }
    };

    walk(config);
    return [...handles].map(([id, handle]) => ({ id, handle, pause: pauses.get(id) ?? null }));
};

/** Tells the engine whether it may get a certificate: only for the exact name of an enabled site that wants one. Only the engine itself can ask. */
const permissionRoute = ({ folders, address }: CompileContext): Part => {
    const host = permissionHost(address);
    return {
        match: [{ path: [permissionPath], host: [host], remote_ip: { ranges: [host] }, protocol: 'http' }],
        handle: [
            subroute([
                {
                    match: [
                        {
                            vars_regexp: {
                                '{http.request.uri.query.domain}': {
                                    name: 'portico_ask',
                                    pattern: `^${plainName}$`
                                }
                            }
                        }
                    ],
                    handle: [
                        subroute([
                            {
                                match: [
                                    {
                                        file: {
                                            root: folders.table,
                                            try_files: ['on', 'maintenance', 'on'].map(
                                                (state) => `/{http.regexp.portico_ask.1}/${state},demand,*`
                                            )
                                        }
                                    }
                                ],
                                handle: [answer(200, '')],
                                terminal: true
                            }
                        ])
                    ]
                },
                { handle: [answer(403, '')] }
            ])
        ],
        terminal: true
    };
};

/** The address on which the engine reaches itself. */
export const permissionHost = (address: string | undefined): string =>
    address === undefined || address === '' || address === '0.0.0.0' || address === '::'
        ? '127.0.0.1'
        : address;

const entry = (name: string, pattern: string): Part => ({
    vars_regexp: { '{http.matchers.file.relative}': { name, pattern: `^/[^/]+/${pattern}$` } }
});

const subroute = (routes: readonly Part[]): Part => ({ handler: 'subroute', routes });

const answer = (status: number, body: string, headers: Part = {}): Part => ({
    handler: 'static_response',
    status_code: status,
    headers: {
        ...(body !== '' && { 'Content-Type': ['text/plain; charset=utf-8'] }),
        'Cache-Control': ['no-store'],
        ...headers
    },
    ...(body !== '' && { body })
});

const retryLater = { 'Retry-After': ['300'] };

const notFound = answer(404, '404 Not Found\n');
