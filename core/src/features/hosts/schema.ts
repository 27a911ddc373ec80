/** The wire shape of a host: what may be sent, what is read back, and every bound. */
import { joi, type Value } from '@portico/sdk';

/** Largest counts and lengths; the names say of what. */
export const bounds = {
    aliases: 100,
    upstreams: 64,
    locations: 100,
    headerOperations: 100,
    addresses: 1000,
    basicAuth: 50,
    copyHeaders: 50,
    corsOrigins: 100,
    corsMethods: 20,
    corsHeaders: 100,
    errorPages: 20,
    errorPageBytes: 65_536,
    tags: 50,
    tagLength: 64,
    notesLength: 10_000,
    advanced: 32,
    advancedBytes: 65_536,
    indexFiles: 10,
    batch: 1000
} as const;

const hostTypes = ['proxy', 'redirect', 'static', 'php'] as const;
const sslModes = ['auto', 'internal', 'certificate'] as const;
const policies = [
    'round_robin',
    'least_conn',
    'ip_hash',
    'first',
    'random',
    'header',
    'cookie',
    'weighted'
] as const;
/** Header of the policy `header` and cookie of the policy `cookie` when none is named. */
export const defaultKeys = { header: 'X-Session-Id', cookie: 'lb' } as const;

const name = (): ReturnType<typeof text> => text(253);
const text = (longest: number) => joi.string().max(longest);
const address = () =>
    text(300).description(
        '`host:port`, `http://…`, `https://…` or `h2c://…` of host and port, or `unix/` with the absolute path of a socket (needs `hosts:unsafe`)'
    );
const seconds = (least: number, most: number) => joi.number().integer().min(least).max(most);
const bytes = (most: number) => joi.number().integer().min(0).max(most);
const path = (longest = 1024) => text(longest);
const index = () => joi.array().items(text(255)).max(bounds.indexFiles);

const operations = () =>
    joi
        .array()
        .items(
            joi.object({
                op: joi
                    .string()
                    .valid('set', 'add', 'delete')
                    .required()
                    .description('`set` replaces, `add` keeps what is there, `delete` removes'),
                name: text(256)
                    .required()
                    .description(
                        'Header name. `Host` of a request can only be set, and needs `hosts:unsafe`'
                    ),
                value: text(8192).allow('').default('').description('Empty for `delete`')
            })
        )
        .max(bounds.headerOperations);

const fields = {
    aliases: joi
        .array()
        .items(name())
        .max(bounds.aliases)
        .allow(null)
        .default([])
        .description('Further names, with the rules of `domain`'),
    type: joi
        .string()
        .valid(...hostTypes)
        .allow(null)
        .default('proxy')
        .description(
            'What the host does. Fields of another type are refused; changing the type clears those of the old one'
        ),
    upstream: address()
        .allow(null)
        .description('Where a proxy sends to: the first of `upstreams`. Sent alone, it replaces the list'),
    upstreams: joi
        .array()
        .items(
            joi.object({
                address: address().required(),
                weight: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(1000)
                    .default(1)
                    .description('Share of the traffic under the policy `weighted`, 1 to 1,000')
            })
        )
        .max(bounds.upstreams)
        .allow(null)
        .description(
            'Every address that a proxy sends to; all of them speak the same way (plain HTTP, HTTPS, or HTTP/2 without TLS)'
        ),
    ssl: joi.boolean().allow(null).default(false).description('Serves HTTPS'),
    sslMode: joi
        .string()
        .valid(...sslModes)
        .allow(null)
        .default('auto')
        .description(
            "`auto`: by ACME; `internal`: by the engine's own authority; `certificate`: the one of `certificateId`"
        ),
    certificateId: joi
        .number()
        .integer()
        .min(1)
        .allow(null)
        .default(null)
        .description('A certificate that covers every name of the host; only with `sslMode` `certificate`'),
    forceHttps: joi
        .boolean()
        .allow(null)
        .description('Redirects HTTP to HTTPS. Follows `ssl` unless it is sent'),
    hsts: joi
        .boolean()
        .allow(null)
        .description('Sends Strict-Transport-Security; only with `ssl`. Default false'),
    loadBalancing: joi
        .object({
            policy: joi
                .string()
                .valid(...policies)
                .default('round_robin')
                .description('How an upstream is chosen'),
            key: text(256)
                .allow(null)
                .description(
                    `Header of the policy \`header\` (default ${defaultKeys.header}) or cookie of the policy \`cookie\` (default ${defaultKeys.cookie}); not for others`
                ),
            retries: joi
                .number()
                .integer()
                .min(0)
                .max(10)
                .default(0)
                .description('Further upstreams tried after a failure to connect, 0 to 10'),
            tryDurationSeconds: seconds(0, 300)
                .default(0)
                .description('For how long another upstream is looked for, 0 to 300 s')
        })
        .allow(null)
        .default(null)
        .description('Only for `proxy`'),
    healthCheck: joi
        .object({
            path: path()
                .allow(null)
                .default(null)
                .description('Path and query of the active check; null: none'),
            intervalSeconds: seconds(1, 3600).default(30).description('1 to 3,600 s'),
            timeoutSeconds: seconds(1, 300).default(5).description('1 to 300 s'),
            expectStatus: joi
                .number()
                .integer()
                .min(1)
                .max(599)
                .default(2)
                .description('Healthy status: 100 to 599, or 1 to 5 for a whole class (2 is 2xx)'),
            passive: joi
                .object({
                    maxFails: joi
                        .number()
                        .integer()
                        .min(1)
                        .max(1000)
                        .default(1)
                        .description('So many failures take an upstream out, 1 to 1,000'),
                    failDurationSeconds: seconds(1, 3600)
                        .default(30)
                        .description('For how long a failure is remembered, 1 to 3,600 s')
                })
                .allow(null)
                .default(null)
                .description('Watches real requests; null: not')
        })
        .allow(null)
        .default(null)
        .description('Only for `proxy`'),
    locations: joi
        .array()
        .items(
            joi.object({
                path: path()
                    .required()
                    .description(
                        "Path prefix on a segment's border: `/api` matches `/api` and `/api/x`, not `/apis`"
                    ),
                upstream: address().required(),
                stripPrefix: joi
                    .boolean()
                    .default(false)
                    .description('Takes the prefix off before the request is sent')
            })
        )
        .max(bounds.locations)
        .allow(null)
        .default([])
        .description('Paths that are proxied elsewhere; the longest one wins. Not for `redirect`'),
    headers: joi
        .object({
            request: operations().default([]).description('On the way to the upstream'),
            response: operations().default([]).description('On the way to the client')
        })
        .allow(null)
        .default({ request: [], response: [] })
        .description('Header operations, in this order'),
    access: joi
        .object({
            allow: joi
                .array()
                .items(text(64))
                .max(bounds.addresses)
                .default([])
                .description('Addresses or ranges that may enter; empty: all. Several mean any of them'),
            deny: joi
                .array()
                .items(text(64))
                .max(bounds.addresses)
                .default([])
                .description('Addresses or ranges that may not; wins over `allow`'),
            basicAuth: joi
                .array()
                .items(
                    joi.object({
                        username: text(64).required(),
                        password: joi
                            .secret()
                            .max(72)
                            .description(
                                'Write-only, at most 72 bytes. Without it, the user keeps the present one'
                            )
                    })
                )
                .max(bounds.basicAuth)
                .default([])
                .description('Users with passwords; empty: no password is asked'),
            forwardAuth: joi
                .object({
                    url: text(2048)
                        .required()
                        .description(
                            'http or https URL that is asked about each request; a 2xx answer lets it through'
                        ),
                    copyHeaders: joi
                        .array()
                        .items(text(256))
                        .max(bounds.copyHeaders)
                        .default([])
                        .description('Headers of its answer that go on to the upstream')
                })
                .allow(null)
                .default(null)
        })
        .allow(null)
        .default({ allow: [], deny: [], basicAuth: [], forwardAuth: null })
        .description('Who gets in. Every condition must hold'),
    cors: joi
        .object({
            origins: joi
                .array()
                .items(text(300))
                .min(1)
                .max(bounds.corsOrigins)
                .required()
                .description('Exact origins, or the single entry `*`'),
            methods: joi
                .array()
                .items(text(32))
                .max(bounds.corsMethods)
                .default(['GET', 'HEAD', 'POST'])
                .description('Methods that a preflight allows'),
            headers: joi
                .array()
                .items(text(256))
                .max(bounds.corsHeaders)
                .default([])
                .description('Request headers that a preflight allows'),
            credentials: joi.boolean().default(false).description('Lets cookies through; not with `*`'),
            maxAgeSeconds: seconds(0, 86_400)
                .default(600)
                .description('For how long a preflight is remembered, 0 to 86,400 s')
        })
        .allow(null)
        .default(null)
        .description('Answers preflights and marks answers for these origins; null: not'),
    securityHeaders: joi
        .boolean()
        .allow(null)
        .default(false)
        .description(
            'Sets X-Content-Type-Options, sets X-Frame-Options and Referrer-Policy where the upstream has none, and takes Server and X-Powered-By away'
        ),
    compression: joi.boolean().allow(null).default(false).description('Compresses what compresses well'),
    bodyLimitBytes: bytes(1024 ** 4)
        .min(1)
        .allow(null)
        .default(null)
        .description('Largest request body, 1 byte to 1 TiB; null: no limit'),
    timeouts: joi
        .object({
            connectSeconds: seconds(1, 3600)
                .allow(null)
                .default(null)
                .description("To connect to the upstream, 1 to 3,600 s; null: the engine's own"),
            readSeconds: seconds(1, 86_400)
                .allow(null)
                .default(null)
                .description("To wait for the upstream's answer, 1 to 86,400 s; null: the engine's own"),
            writeSeconds: seconds(1, 86_400)
                .allow(null)
                .default(null)
                .description("To send to the upstream, 1 to 86,400 s; null: the engine's own")
        })
        .allow(null)
        .default(null)
        .description('Only for `proxy` and `php`'),
    errorPages: joi
        .array()
        .items(
            joi.object({
                status: joi.number().integer().min(400).max(599).required(),
                body: text(bounds.errorPageBytes).allow('').required().description('HTML')
            })
        )
        .max(bounds.errorPages)
        .allow(null)
        .default([])
        .description('Shown instead of every answer with that status, also of the upstream'),
    maintenance: joi.boolean().allow(null).default(false).description('Answers 503 to everybody'),
    redirect: joi
        .object({
            to: text(2048).required().description('Absolute http or https URL'),
            code: joi.number().valid(301, 302, 307, 308).default(308),
            keepPath: joi.boolean().default(true).description("Appends the request's path and query")
        })
        .allow(null)
        .default(null)
        .description('Required for `redirect`, and only there'),
    static: joi
        .object({
            root: path(4096)
                .required()
                .description(
                    "Absolute path of a folder that the engine's user can read. Needs `hosts:unsafe`"
                ),
            browse: joi.boolean().default(false).description('Lists folders that have no index file'),
            index: index()
                .default(['index.html'])
                .description('Files that stand for their folder, the first that exists'),
            spaFallback: joi
                .boolean()
                .default(false)
                .description("Serves the root's index file for paths that do not exist")
        })
        .allow(null)
        .default(null)
        .description('Required for `static`, and only there'),
    php: joi
        .object({
            root: path(4096).required().description('Absolute path of the folder with the scripts'),
            fastcgi: text(300)
                .required()
                .description('`host:port` or `unix/` with the absolute path of a socket'),
            index: index()
                .default(['index.php'])
                .description('Scripts that stand for their folder, the first that exists')
        })
        .allow(null)
        .default(null)
        .description('Required for `php`, and only there. Needs `hosts:unsafe`'),
    advanced: joi
        .array()
        .items(joi.record(joi.any()))
        .max(bounds.advanced)
        .allow(null)
        .default([])
        .description(
            "Handlers in the engine's own language, put before the host's own. Needs `hosts:unsafe`"
        ),
    tags: joi.array().items(text(bounds.tagLength)).max(bounds.tags).allow(null).default([]),
    notes: text(bounds.notesLength).allow('', null).default(''),
    enabled: joi.boolean().allow(null).default(true).description('Whether the engine serves the host at all')
};

/** Body of POST. */
export const hostCreate = joi.object({
    domain: name().required().description('One name; `*.` before it stands for one label'),
    ...fields
});

/** Body of PUT: the same fields, all optional. What is only read may be sent back and is ignored, but `version`, which acts as If-Match. */
export const hostUpdate = joi.object({
    domain: name(),
    ...fields,
    id: joi.any(),
    owner: joi.any(),
    createdAt: joi.any(),
    updatedAt: joi.any(),
    state: joi.any(),
    stateMessage: joi.any(),
    version: joi
        .number()
        .integer()
        .min(1)
        .description('The version that this change was made for; 41200 when it is not the present one')
});

export const hostClone = joi.object({
    domain: name().required().description('Name of the copy; it gets no aliases')
});

export const hostBatch = joi.object({
    ids: joi
        .array()
        .items(joi.number().integer().min(1))
        .min(1)
        .max(bounds.batch)
        .required()
        .description('Each id once'),
    action: joi.string().valid('enable', 'disable', 'delete').required()
});

/** Body of POST `/{id}/access/check`: who is asking. */
export const accessCheck = joi
    .object({
        ip: joi
            .string()
            .ip({ version: ['ipv4', 'ipv6'], cidr: 'forbidden' })
            .required()
            .description("The client's address as the engine sees it"),
        user: text(64).description('Name that the client gives when a password is asked'),
        password: joi.secret().max(72).description('Without it, that of `user` is taken as right')
    })
    .with('password', 'user');

export const accessVerdict = joi.object({
    allowed: joi.boolean().allow(null).required().description('null: the forward-auth server decides'),
    status: joi.number().integer().allow(null).required().description('What whoever is refused gets'),
    steps: joi
        .array()
        .items(
            joi.object({
                rule: joi
                    .string()
                    .valid('enabled', 'maintenance', 'deny', 'allow', 'basicAuth', 'forwardAuth')
                    .required(),
                outcome: joi.string().valid('passed', 'refused', 'asked').required(),
                evidence: joi.string().required()
            })
        )
        .required()
        .description("The rules that were met, in the engine's order")
});

export const hostParams = joi.object({ id: joi.number().integer().min(1).required() });

/** Orders of the list; `-` turns one round. */
export const sortFields = ['id', 'domain', 'type', 'createdAt', 'updatedAt'] as const;
const states = ['applied', 'pending', 'error', 'disabled'] as const;

export const hostQuery = joi.object({
    q: text(253).description('Part of a name, an upstream, a tag or the notes; letter case does not count'),
    tag: text(bounds.tagLength).description('Hosts with exactly this tag'),
    type: joi.string().valid(...hostTypes),
    enabled: joi.boolean(),
    state: joi.string().valid(...states),
    sort: joi
        .string()
        .valid(...sortFields, ...sortFields.map((field) => `-${field}` as const))
        .default('id'),
    limit: joi.number().integer().min(1).max(1000).description('Page size; without it, all hosts'),
    cursor: text(2048).description('From the `Link` of the page before; with the same filters and sort')
});

export const hostView = joi.object({
    id: joi.number().integer().required(),
    domain: joi.string().required(),
    aliases: joi.array().items(joi.string()).required(),
    type: joi
        .string()
        .valid(...hostTypes)
        .required(),
    enabled: joi.boolean().required(),
    maintenance: joi.boolean().required(),
    upstream: joi.string().allow(null).required(),
    upstreams: joi
        .array()
        .items(joi.object({ address: joi.string().required(), weight: joi.number().required() }))
        .required(),
    ssl: joi.boolean().required(),
    sslMode: joi
        .string()
        .valid(...sslModes)
        .required(),
    certificateId: joi.number().allow(null).required(),
    forceHttps: joi.boolean().required(),
    hsts: joi.boolean().required(),
    loadBalancing: joi
        .object({
            policy: joi
                .string()
                .valid(...policies)
                .required(),
            key: joi.string().allow(null).required(),
            retries: joi.number().required(),
            tryDurationSeconds: joi.number().required()
        })
        .allow(null)
        .required(),
    healthCheck: joi
        .object({
            path: joi.string().allow(null).required(),
            intervalSeconds: joi.number().required(),
            timeoutSeconds: joi.number().required(),
            expectStatus: joi.number().required(),
            passive: joi
                .object({ maxFails: joi.number().required(), failDurationSeconds: joi.number().required() })
                .allow(null)
                .required()
        })
        .allow(null)
        .required(),
    locations: joi
        .array()
        .items(
            joi.object({
                path: joi.string().required(),
                upstream: joi.string().required(),
                stripPrefix: joi.boolean().required()
            })
        )
        .required(),
    headers: joi.object({ request: readOperations(), response: readOperations() }).required(),
    access: joi
        .object({
            allow: joi.array().items(joi.string()).required(),
            deny: joi.array().items(joi.string()).required(),
            basicAuth: joi
                .array()
                .items(joi.object({ username: joi.string().required() }))
                .required(),
            forwardAuth: joi
                .object({
                    url: joi.string().required(),
                    copyHeaders: joi.array().items(joi.string()).required()
                })
                .allow(null)
                .required()
        })
        .required(),
    cors: joi
        .object({
            origins: joi.array().items(joi.string()).required(),
            methods: joi.array().items(joi.string()).required(),
            headers: joi.array().items(joi.string()).required(),
            credentials: joi.boolean().required(),
            maxAgeSeconds: joi.number().required()
        })
        .allow(null)
        .required(),
    securityHeaders: joi.boolean().required(),
    compression: joi.boolean().required(),
    bodyLimitBytes: joi.number().allow(null).required(),
    timeouts: joi
        .object({
            connectSeconds: joi.number().allow(null).required(),
            readSeconds: joi.number().allow(null).required(),
            writeSeconds: joi.number().allow(null).required()
        })
        .allow(null)
        .required(),
    errorPages: joi
        .array()
        .items(joi.object({ status: joi.number().required(), body: joi.string().allow('').required() }))
        .required(),
    redirect: joi
        .object({
            to: joi.string().required(),
            code: joi.number().valid(301, 302, 307, 308).required(),
            keepPath: joi.boolean().required()
        })
        .allow(null)
        .required(),
    static: joi
        .object({
            root: joi.string().required(),
            browse: joi.boolean().required(),
            index: joi.array().items(joi.string()).required(),
            spaFallback: joi.boolean().required()
        })
        .allow(null)
        .required(),
    php: joi
        .object({
            root: joi.string().required(),
            fastcgi: joi.string().required(),
            index: joi.array().items(joi.string()).required()
        })
        .allow(null)
        .required(),
    advanced: joi.array().items(joi.record(joi.any())).required(),
    tags: joi.array().items(joi.string()).required(),
    notes: joi.string().allow('').required(),
    owner: joi.string().allow(null).required().description('The plugin that made the host; null for people'),
    version: joi.number().integer().required(),
    createdAt: joi.string().required(),
    updatedAt: joi.string().required(),
    state: joi
        .string()
        .valid(...states)
        .required()
        .description('Whether the engine serves the host as it stands here'),
    stateMessage: joi.string().allow(null).required().description('Why it is `pending` or `error`')
});

function readOperations() {
    return joi
        .array()
        .items(
            joi.object({
                op: joi.string().valid('set', 'add', 'delete').required(),
                name: joi.string().required(),
                value: joi.string().allow('').required()
            })
        )
        .required();
}

/** A host as it is read. */
export type HostView = Value<typeof hostView>;
/** A change as it may be sent to PUT; PUT knows no defaults, so the parts of an object may be missing too. */
export type HostChange = Loose<Value<typeof hostUpdate>>;
export type AccessCheck = Value<typeof accessCheck>;
export type AccessVerdict = Value<typeof accessVerdict>;
export type HostQuery = Value<typeof hostQuery>;
export type HostBatch = Value<typeof hostBatch>;

/** Everything may be missing, at any depth. */
export type Loose<T> = T extends readonly (infer E)[]
    ? readonly Loose<E>[]
    : T extends object
      ? { readonly [K in keyof T]?: Loose<T[K]> | undefined }
      : T;
