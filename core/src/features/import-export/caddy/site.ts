/** Models the routes of one site as the fields of a host. */
import { type Json, list, record } from '../json.ts';
import { Foreign, keys, literal } from './reading.ts';
import { addresses, balancing, healthCheck } from './upstreams.ts';

/** A host that was made from routes, with notes on what its fields cannot say. */
export interface Modelled {
    readonly fields: Json;
    /** bcrypt hashes of passwords, by user. */
    readonly hashes: ReadonlyMap<string, string>;
    /** The unchanged routes, when the fields of a host cannot say what they do. */
    readonly advanced: readonly Json[] | null;
    readonly reason: string | null;
    /** What the host will serve differently. */
    readonly notes: readonly string[];
}

interface Step {
    readonly match: Json | null;
    readonly handler: Json;
}

interface Draft {
    fields: Record<string, unknown>;
    root: string | null;
    readonly hashes: Map<string, string>;
    readonly locations: Json[];
    readonly request: Json[];
    readonly response: Json[];
    readonly notes: string[];
    /** Set by the handler that answers. */
    done: boolean;
}

/** Translates the routes of one name to a host's fields. Pure. */
export function modelSite(routes: readonly Json[]): Modelled {
    const draft: Draft = {
        fields: {},
        root: null,
        hashes: new Map(),
        locations: [],
        request: [],
        response: [],
        notes: [],
        done: false
    };
    try {
        const steps = linear(routes, null);
        const php = steps.find(({ handler }) => record(handler['transport'])['protocol'] === 'fastcgi');
        for (const step of steps) {
            if (draft.done) {
                break;
            }
            take(step, draft, php);
        }
        if (!draft.done) {
            throw new Foreign('no handler of it answers');
        }
        const headers =
            draft.request.length + draft.response.length === 0
                ? {}
                : { headers: { request: draft.request, response: draft.response } };
        const access =
            draft.hashes.size === 0
                ? {}
                : { access: { basicAuth: [...draft.hashes.keys()].map((username) => ({ username })) } };
        return {
            fields: {
                ...draft.fields,
                ...headers,
                ...access,
                ...(draft.locations.length === 0 ? {} : { locations: draft.locations })
            },
            hashes: draft.hashes,
            advanced: null,
            reason: null,
            notes: draft.notes
        };
    } catch (error) {
        if (!(error instanceof Foreign)) {
            throw error;
        }
        // The routes answer every request, so the upstream that a proxy must have is never used.
        return {
            fields: { type: 'proxy', upstream: firstDial(routes) ?? '127.0.0.1:9' },
            hashes: new Map(),
            advanced: [{ handler: 'subroute', routes }],
            reason: error.message,
            notes: []
        };
    }
}

/** Handlers in the order in which a request reaches them, each with its condition. */
function linear(routes: readonly Json[], match: Json | null): readonly Step[] {
    return routes.flatMap((route): readonly Step[] => {
        const sets = list(route['match']).map(record);
        if (sets.length > 1) {
            throw new Foreign('a route of it has several alternative conditions');
        }
        const own = sets[0] ?? null;
        if (own !== null && match !== null) {
            throw new Foreign('a route of it has a condition inside a condition');
        }
        return list(route['handle'])
            .map(record)
            .flatMap((handler): readonly Step[] => {
                if (handler['handler'] !== 'subroute') {
                    return [{ match: own ?? match, handler }];
                }
                if (handler['errors'] !== undefined) {
                    throw new Foreign('it handles errors by routes');
                }
                const inner = list(handler['routes']).map(record);
                return own === null ? linear(inner, match) : [{ match: own, handler: collapsed(inner) }];
            });
    });
}

/** The handlers below a condition as one: a proxy, which may strip a prefix first. */
function collapsed(routes: readonly Json[]): Json {
    const handlers = linear(routes, null);
    const [first, last] = handlers.length === 1 ? [null, handlers[0]] : handlers;
    const strip = record(first?.handler);
    const only = Object.keys(strip).every((key) => key === 'handler' || key === 'strip_path_prefix');
    if (
        handlers.length > 2 ||
        last?.handler['handler'] !== 'reverse_proxy' ||
        handlers.some((each) => each.match !== null) ||
        (first !== null && (strip['handler'] !== 'rewrite' || !only))
    ) {
        throw new Foreign('a path of it does more than to send elsewhere');
    }
    return { ...last.handler, ...(first === null ? {} : { strip: strip['strip_path_prefix'] }) };
}

function take({ match, handler }: Step, draft: Draft, php: Step | undefined): void {
    const kind = handler['handler'];
    if (match !== null) {
        if (php !== undefined && (match['file'] !== undefined || list(match['path']).includes('*.php'))) {
            takePhp(handler, draft);
            return;
        }
        takeLocation(match, handler, draft);
        return;
    }
    const takers: Readonly<Record<string, (handler: Json, draft: Draft) => void>> = {
        encode: takeEncode,
        headers: takeHeaders,
        authentication: takeUsers,
        vars: takeRoot,
        request_body: takeLimit,
        reverse_proxy: takeProxy,
        static_response: takeRedirect,
        file_server:
            php === undefined
                ? takeFiles
                : (files, into) => {
                      keys(files, ['handler', 'hide']);
                      into.done = true;
                  }
    };
    const taker = takers[String(kind)];
    if (taker === undefined) {
        throw new Foreign(`it has the handler ${String(kind)}`);
    }
    taker(handler, draft);
}

function takeEncode(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'encodings', 'prefer', 'minimum_length', 'match']);
    draft.fields['compression'] = true;
}

function takeHeaders(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'request', 'response']);
    draft.request.push(...operations(record(handler['request'])));
    draft.response.push(...operations(record(handler['response'])));
}

function operations(headers: Json): readonly Json[] {
    keys(headers, ['set', 'add', 'delete', 'deferred']);
    const named = (op: string): readonly Json[] =>
        Object.entries(record(headers[op])).flatMap(([name, values]) =>
            list(values).map((value) => ({ op, name, value: literal(value) }))
        );
    return [
        ...named('set'),
        ...named('add'),
        ...list(headers['delete']).map((name) => ({ op: 'delete', name: literal(name), value: '' }))
    ];
}

function takeUsers(handler: Json, draft: Draft): void {
    const basic = record(record(handler['providers'])['http_basic']);
    const algorithm = record(basic['hash'])['algorithm'] ?? 'bcrypt';
    if (
        Object.keys(record(handler['providers'])).some((name) => name !== 'http_basic') ||
        algorithm !== 'bcrypt' ||
        draft.hashes.size > 0
    ) {
        throw new Foreign('it asks for more than a password of bcrypt');
    }
    for (const account of list(basic['accounts']).map(record)) {
        const text = String(account['password'] ?? '');
        draft.hashes.set(
            literal(account['username']),
            text.startsWith('$') ? text : Buffer.from(text, 'base64').toString('latin1')
        );
    }
}

function takeRoot(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'root']);
    draft.root = literal(handler['root']);
}

function takeLimit(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'max_size']);
    draft.fields['bodyLimitBytes'] = handler['max_size'];
}

function takeProxy(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'upstreams', 'transport', 'load_balancing', 'health_checks', 'headers']);
    const headers = record(handler['headers']);
    keys(headers, ['request', 'response']);
    draft.request.push(...operations(record(headers['request'])));
    draft.response.push(...operations(record(headers['response'])));
    const upstreams = addresses(handler).map((address) => ({ address, weight: 1 }));
    Object.assign(
        draft.fields,
        { type: 'proxy', upstreams },
        balancing(record(handler['load_balancing'])),
        healthCheck(record(handler['health_checks']), (message) => draft.notes.push(message))
    );
    draft.done = true;
}

function takeLocation(match: Json, handler: Json, draft: Draft): void {
    keys(match, ['path']);
    if (handler['handler'] !== 'reverse_proxy') {
        throw new Foreign('a path of it does more than to send elsewhere');
    }
    const { strip, ...proxy } = handler;
    keys(proxy, ['handler', 'upstreams', 'transport']);
    const [upstream, ...others] = addresses(proxy);
    const stripPrefix = strip !== undefined;
    for (const pattern of list(match['path'])) {
        const path = /^(\/[^*?]*[^*?/])\/?\*$/.exec(String(pattern))?.[1];
        if (
            path === undefined ||
            others.length > 0 ||
            (stripPrefix && strip !== path) ||
            !String(pattern).endsWith('/*')
        ) {
            throw new Foreign(`the path ${String(pattern)} is led in a way that locations are not`);
        }
        draft.locations.push({ path, upstream, stripPrefix });
    }
}

function takePhp(handler: Json, draft: Draft): void {
    const isHelper =
        (handler['handler'] === 'static_response' && handler['status_code'] === 308) ||
        (handler['handler'] === 'rewrite' && handler['uri'] === '{http.matchers.file.relative}');
    if (isHelper) {
        return;
    }
    keys(handler, ['handler', 'transport', 'upstreams']);
    keys(record(handler['transport']), ['protocol', 'split_path', 'root']);
    const dials = list(handler['upstreams']).map((upstream) => literal(record(upstream)['dial']));
    const root = draft.root ?? record(handler['transport'])['root'];
    if (handler['handler'] !== 'reverse_proxy' || dials.length === 0 || typeof root !== 'string') {
        throw new Foreign('it runs PHP in a way of its own');
    }
    draft.fields['type'] = 'php';
    draft.fields['php'] = {
        root,
        ...(dials.length === 1
            ? { fastcgi: dials[0] }
            : { upstreams: dials.map((address) => ({ address, weight: 1 })) }),
        index: ['index.php']
    };
    draft.done = true;
}

function takeFiles(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'root', 'hide', 'browse', 'index_names']);
    const root = handler['root'] ?? draft.root;
    if (typeof root !== 'string' || !root.startsWith('/')) {
        throw new Foreign('its folder is not an absolute path');
    }
    // The adapter adds a rule that hides the Caddyfile, which is a temporary file here.
    const hidden = list(handler['hide']).filter(
        (file) => !/(?:^|\/)(?:Caddyfile|adapt-[0-9a-f]{16})$/.test(String(file))
    );
    if (hidden.length > 0) {
        draft.notes.push(`left out: hide ${hidden.join(', ')}; these files are served`);
    }
    draft.fields['type'] = 'static';
    draft.fields['static'] = {
        root,
        browse: handler['browse'] !== undefined,
        spaFallback: false,
        ...(handler['index_names'] === undefined ? {} : { index: handler['index_names'] })
    };
    draft.done = true;
}

function takeRedirect(handler: Json, draft: Draft): void {
    keys(handler, ['handler', 'status_code', 'headers']);
    const headers = record(handler['headers']);
    const location = list(headers['Location'])[0];
    const code = Number(handler['status_code']);
    if (
        typeof location !== 'string' ||
        Object.keys(headers).length !== 1 ||
        ![301, 302, 307, 308].includes(code)
    ) {
        throw new Foreign('it answers by itself');
    }
    const keepPath = location.endsWith('{http.request.uri}');
    draft.fields['type'] = 'redirect';
    draft.fields['redirect'] = {
        to: literal(keepPath ? location.slice(0, -'{http.request.uri}'.length) : location),
        code,
        keepPath
    };
    draft.done = true;
}

function firstDial(value: unknown): string | null {
    if (typeof value !== 'object' || value === null) {
        return null;
    }
    const { dial } = value as { dial?: unknown };
    if (typeof dial === 'string' && /^[\w.-]+:\d+$/.test(dial)) {
        return dial;
    }
    for (const inner of Object.values(value)) {
        const found = firstDial(inner);
        if (found !== null) {
            return found;
        }
    }
    return null;
}
