/** Collects what `setup` declares. The code stays here; the rest becomes the generation's document. */
import type { Assets, Health } from '../../context/context.ts';
import type { TapOrder } from '../../hooks.ts';
import type { AnySchema } from '../../joi.ts';
import type { Awaitable, Declared, EventSchemas, PluginAccess } from '../../routes/route.ts';
import { faultOfRouteUi } from '../../routes/ui.ts';
import { isFields } from '../plain.ts';
import type { GenerationDocument, RouteDocument, SchemaDescription } from '../protocol.ts';
import { describeSchema } from '../schemas/describe.ts';

type Handler = (...input: never[]) => unknown;

/** A declared route with its code. */
export interface GuestRoute {
    readonly document: RouteDocument;
    readonly method: string;
    readonly validate: {
        readonly params?: AnySchema;
        readonly query?: AnySchema;
        readonly payload?: AnySchema;
    };
    readonly returns: AnySchema | null;
    /** Null: it does not say what its events hold. */
    readonly events: EventSchemas | null;
    /** What it gets was validated by the route's own schemas. */
    readonly handler: (...input: unknown[]) => unknown;
}

/** A declared tap with its code. */
export interface GuestTap {
    readonly hook: string;
    readonly order: TapOrder;
    readonly tap: (payload: unknown, call: { readonly signal: AbortSignal }) => unknown;
}

/** Any route as its author wrote it. */
export interface AnyRoute extends Declared {
    readonly access: PluginAccess;
    readonly id?: string;
    readonly summary?: string;
    readonly method?: string;
    readonly methods?: readonly string[];
    readonly validate?: GuestRoute['validate'];
    readonly returns?: AnySchema;
    readonly events?: EventSchemas;
    readonly handler: Handler;
    readonly [option: string]: unknown;
}

type Kind = RouteDocument['kind'];
type Work = (...input: never[]) => Awaitable<void>;

/** Options that are plain data and pass as they are. */
const plainOptions = [
    'description',
    'stepUp',
    'deprecated',
    'effect',
    'timeoutSeconds',
    'maxBytes',
    'audit',
    'secret',
    'accepts',
    'protocols',
    'maxMessageBytes',
    'raw',
    'oauth',
    'ui',
    'answers'
] as const;
const eventForm = /^[a-zA-Z][\w.-]{0,63}$/;
const idForm = /^[a-zA-Z][\w.-]{0,99}$/;
const permissionForm = /^[a-z][a-z0-9-]{0,39}$/;

/** Collects what `setup` registers, and refuses what is not valid. */
export class Registration {
    readonly routes = new Map<string, GuestRoute>();
    readonly taps: GuestTap[] = [];
    readonly hooks: GenerationDocument['hooks'][number][] = [];
    readonly assets: Assets[] = [];
    readonly health = new Map<string, (signal: AbortSignal) => Awaitable<Health>>();
    readonly starts: ((signal: AbortSignal) => Awaitable<void>)[] = [];
    readonly stops: ((signal: AbortSignal) => Awaitable<void>)[] = [];
    readonly onSettings: Work[] = [];
    readonly onPartner: { readonly name: string; readonly work: Work }[] = [];
    #open = true;

    /** Every registration passes here. @throws TypeError when `setup` is over */
    begin(member: string): void {
        if (!this.#open) {
            throw new TypeError(`ctx.${member} is registration: it belongs in setup, before it returns`);
        }
    }

    close(): void {
        this.#open = false;
    }

    /** @throws TypeError that names the route and what is wrong with it */
    route(kind: Kind, route: AnyRoute): void {
        this.begin(kind === 'json' ? 'route' : kind);
        const methods =
            kind === 'http'
                ? (route.methods ?? [])
                : [
                      kind === 'json' || kind === 'upload'
                          ? (route.method ?? '')
                          : kind === 'stream'
                            ? (route.method ?? 'GET')
                            : 'GET'
                  ];
        const id = route.id ?? defaultId(methods[0] ?? '', route.path);
        const name = `${methods.join('|')} ${route.path} (${id})`;
        check(kind, route, methods, id, name);
        if (this.routes.has(id)) {
            throw new TypeError(`Route ${name}: another route has this id`);
        }
        const twin = [...this.routes.values()].find(
            ({ document }) =>
                samePath(document.path, route.path) &&
                document.methods.some((method) => methods.includes(method))
        );
        if (twin !== undefined) {
            throw new TypeError(`Route ${name} is declared twice`);
        }
        const { params, query, payload } = route.validate ?? {};
        const schemas = describeAll({ params, query, payload, returns: route.returns });
        const options = Object.fromEntries(
            plainOptions
                .filter((option) => route[option] !== undefined)
                .map((option) => [option, structuredClone(route[option])])
        );
        const document = {
            ...options,
            kind,
            id,
            path: route.path,
            summary: route.summary ?? `${methods[0]} ${route.path}`,
            access: structuredClone(route.access),
            methods: [...methods],
            tool: route['tool'] !== false,
            ...(route.events === undefined ? {} : { events: describeAll(route.events) }),
            schemas
        } as RouteDocument;
        this.routes.set(id, {
            document,
            method: methods[0] ?? 'GET',
            validate: route.validate ?? {},
            returns: route.returns ?? null,
            events: route.events ?? null,
            handler: route.handler.bind(route) as GuestRoute['handler']
        });
    }

    document(contract: readonly string[] | null): GenerationDocument {
        return {
            routes: [...this.routes.values()].map(({ document }) => document),
            assets: this.assets.map((assets) => structuredClone(assets)),
            taps: this.taps.map(({ hook, order }, tap) => ({ tap, hook, order })),
            hooks: [...this.hooks],
            health: [...this.health.keys()],
            contract
        };
    }
}

function check(kind: Kind, route: AnyRoute, methods: readonly string[], id: string, name: string): void {
    const wrong = (what: string): never => {
        throw new TypeError(`Route ${name} ${what}`);
    };
    if (
        typeof route.path !== 'string' ||
        !/^\/[^/\s]/.test(route.path) ||
        route.path.includes('//') ||
        route.path.endsWith('/')
    ) {
        wrong("needs a path below the plugin's own, such as /things or /things/{id}");
    }
    if (route.path === '/logs') {
        wrong("has a path of the panel's: /logs is the log of the plugin");
    }
    if (typeof route.handler !== 'function') {
        wrong('has no handler');
    }
    const allowed =
        kind === 'http'
            ? ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
            : kind === 'json'
              ? ['GET', 'POST', 'PUT', 'DELETE']
              : kind === 'upload'
                ? ['POST', 'PUT']
                : ['GET', 'POST'];
    if (methods.length === 0 || methods.some((method) => !allowed.includes(method))) {
        wrong(`needs a method: ${allowed.join(', ')}`);
    }
    if (kind === 'http' && route['effect'] !== undefined && route['effect'] !== 'read') {
        wrong(
            "can declare the effect 'read' only: what a raw route does beyond that follows from its methods"
        );
    }
    if (
        route['oauth'] !== undefined &&
        (kind !== 'http' || route['oauth'] !== true || typeof route.access !== 'string')
    ) {
        wrong(
            "is a protected resource of OAuth, which only a raw route is, with oauth: true and a permission or 'authenticated' as its access"
        );
    }
    if (!idForm.test(id)) {
        wrong('needs an id of letters, digits, dots and dashes');
    }
    checkDescribed(kind, route, wrong);
    const access: unknown = route.access;
    if (typeof access === 'string') {
        if (!permissionForm.test(access)) {
            wrong(
                `names the permission ${JSON.stringify(access)}: a plugin's routes ask for permissions of its own, without a colon`
            );
        }
        return;
    }
    const {
        public: reason,
        ticket,
        permission
    } = (access ?? {}) as { public?: unknown; ticket?: unknown; permission?: unknown };
    if (typeof reason === 'string' && reason.length >= 10) {
        return;
    }
    if (typeof ticket === 'string' && typeof permission === 'string' && permissionForm.test(permission)) {
        if (!['socket', 'stream', 'download'].includes(kind) || methods[0] !== 'GET') {
            wrong('takes a ticket, which only a WebSocket, a GET of an event stream and a download do');
        }
        if (!route.path.includes(`{${ticket}}`)) {
            wrong(`takes its ticket from {${ticket}}, which is not in its path`);
        }
        return;
    }
    wrong(
        "declares no access: a permission of the plugin, 'authenticated', { public: 'the reason' }, or { ticket, permission }"
    );
}

const successes = ['done', 'made', 'task'];

/** What the route says to pages and to the documentation. */
function checkDescribed(kind: Kind, route: AnyRoute, wrong: (what: string) => never): void {
    const { ui, events, answers } = route as AnyRoute & { readonly answers?: unknown };
    const fault = ui === undefined ? null : faultOfRouteUi(ui);
    if (fault !== null) {
        wrong(`says what no page understands: ${fault}`);
    }
    const given = answers === undefined ? successes : [answers].flat();
    if (given.length === 0 || given.some((each) => !successes.includes(each as string))) {
        wrong(`answers ${JSON.stringify(answers)}: it is one of ${successes.join(', ')}, or a list of them`);
    }
    if (answers !== undefined && kind !== 'json' && kind !== 'upload') {
        wrong('says how it answers, which only a JSON route and an upload do');
    }
    const stray = Object.keys(events ?? {}).find((name) => !eventForm.test(name) || name === 'error');
    if (stray !== undefined) {
        wrong(
            `has an event ${JSON.stringify(stray)}: names have letters, digits, dots and dashes, and are not error`
        );
    }
}

function defaultId(method: string, path: string): string {
    return [
        String(method).toLowerCase(),
        ...String(path)
            .split('/')
            .filter(Boolean)
            .map((segment) => segment.replace(/[{}?*]/g, '').replace(/[^\w-]+/g, '-'))
    ].join('.');
}

function samePath(a: string, b: string): boolean {
    const bare = (path: string): string =>
        path.replace(/\{[^}]*\}/g, (place) => (place.includes('*') ? '{*}' : '{}'));
    return bare(a) === bare(b);
}

function describeAll(
    schemas: Readonly<Record<string, AnySchema | undefined>>
): Readonly<Record<string, SchemaDescription>> {
    return Object.fromEntries(
        Object.entries(schemas)
            .filter(([, schema]) => schema !== undefined)
            .map(([place, schema]) => [place, describe(schema as AnySchema)])
    );
}

/** joi takes milliseconds to describe a large schema, and a plugin that starts again brings the same schemas. */
const described = new WeakMap<AnySchema, SchemaDescription>();

/** joi's description of a schema as plain data, without its functions. */
export function describe(schema: AnySchema): SchemaDescription {
    const description = described.get(schema) ?? (plain(describeSchema(schema)) as SchemaDescription);
    described.set(schema, description);
    return description;
}

function plain(value: unknown): unknown {
    if (value instanceof RegExp) {
        return String(value);
    }
    if (Array.isArray(value)) {
        return value.map(plain);
    }
    if (isFields(value)) {
        return Object.fromEntries(
            Object.entries(value)
                .filter(([, item]) => typeof item !== 'function' && typeof item !== 'symbol')
                .map(([key, item]) => [key, plain(item)])
        );
    }
    return value;
}
