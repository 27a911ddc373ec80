/**
 * The document that describes every mounted route, made of the declarations that the routes are served by. It is built at the
 * first request and kept until the set of mounted servers changes.
 */
import { createHash } from 'node:crypto';

import type { JsonSchema } from '../json-schema/description.ts';
import type { Route } from '../route.ts';
import { createNames, sharedComponents } from './components.ts';
import { withForeignLinks, withLinks } from './links.ts';
import { type Operation, type OperationInput, operationOf } from './operation.ts';
import { fullPath, templateOf } from './path.ts';

/** What the navigation shows of a plugin. */
export interface AboutServer {
    readonly title: string;
    readonly icon?: string;
    /** Heading that it stands under. */
    readonly group?: string;
    /** Pages that it brings. */
    readonly pages?: readonly AboutPage[];
    /** Addresses of its texts in other languages, by language. */
    readonly locales?: Readonly<Record<string, string>>;
}

/** What the document is made of. */
export interface DescribedServer {
    readonly name: string;
    /** `/api/plugins/<name>`, or empty for the core. */
    readonly prefix: string;
    readonly routes: readonly Route[];
    /** What the navigation shows of a plugin. */
    readonly about?: AboutServer | null;
}

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument {
    readonly openapi: '3.1.0';
    readonly info: JsonSchema;
    readonly servers: readonly JsonSchema[];
    readonly security: readonly JsonSchema[];
    readonly tags: readonly Tag[];
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
}

/** A group of operations: one of the core's, or a plugin. `x-summary`, `x-kind` and `x-parent` are what OpenAPI 3.2 calls `summary`, `kind` and `parent`. */
export interface Tag {
    readonly name: string;
    readonly description: string;
    readonly 'x-summary'?: string;
    readonly 'x-kind'?: 'nav';
    readonly 'x-parent'?: string;
    readonly 'x-icon'?: string;
    readonly 'x-pages'?: readonly AboutPage[];
    readonly 'x-locales'?: Readonly<Record<string, string>>;
    /** What the entries of its operations in the audit log name. */
    readonly 'x-resources'?: readonly string[];
}

/** A page that a plugin brings; shown in a frame. */
export interface AboutPage {
    readonly id: string;
    readonly title: string;
    readonly icon?: string;
    /** The permission that it needs, with the plugin's name. */
    readonly access: string;
    readonly place: 'nav' | 'tab' | 'dashboard' | 'host';
    /** Operations of others that it calls. */
    // eslint-disable-next-line portico/glossary -- the manifest's word
    readonly uses: readonly string[];
    /** Path of its document. */
    readonly path: string;
}

/** A document as it is sent, with the entity tag of its content. */
export interface DocumentText {
    readonly body: string;
    readonly etag: string;
}

/** The description of everything that is mounted now. */
export interface OpenApi {
    document(): OpenApiDocument;
    /** The document as it is sent; with `tag`, only the operations of that tag. Null when there is no such tag. */
    text(tag?: string): DocumentText | null;
}

/** What the documents are made from. */
export interface OpenApiOptions {
    /** Everything that is mounted now, the core first. */
    readonly servers: () => readonly DescribedServer[];
    /** The panel's version. */
    readonly version: string;
}

interface Kept {
    /** Held weakly: a server that was taken away must not stay for the sake of its description. */
    readonly of: readonly WeakRef<DescribedServer>[];
    readonly document: OpenApiDocument;
    /** By tag; the whole under the empty name. */
    readonly texts: Map<string, DocumentText>;
}

/** Describes on request, and keeps the document until what is mounted changes. */
export function createOpenApi({ servers, version }: OpenApiOptions): OpenApi {
    let kept: Kept | null = null;
    const current = (): Kept => {
        const mounted = servers();
        const same =
            kept !== null &&
            kept.of.length === mounted.length &&
            kept.of.every((ref, index) => ref.deref() === mounted[index]);
        if (kept === null || !same) {
            kept = {
                of: mounted.map((server) => new WeakRef(server)),
                document: build(mounted, version),
                texts: new Map()
            };
        }
        return kept;
    };
    return {
        document: () => current().document,
        text(tag = '') {
            const { document, texts } = current();
            let text = texts.get(tag);
            if (text === undefined) {
                const part = tag === '' ? document : partOf(document, tag);
                if (part === null) {
                    return null;
                }
                const body = JSON.stringify(part);
                text = { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
                texts.set(tag, text);
            }
            return text;
        }
    };
}

/** The operations of one tag with what they refer to, and all tags, so that a page can show where else to go; null when there is no such tag. */
function partOf(document: OpenApiDocument, tag: string): OpenApiDocument | null {
    if (!document.tags.some(({ name }) => name === tag)) {
        return null;
    }
    const own = Object.fromEntries(
        Object.entries(document.paths).flatMap(([path, item]) => {
            const operations = Object.entries(item).filter(([, operation]) => operation.tags.includes(tag));
            return operations.length === 0 ? [] : [[path, Object.fromEntries(operations)]];
        })
    );
    const paths = withForeignLinks(own, document.paths);
    return { ...document, paths, components: withoutUnused(document.components, paths) };
}

/**
 * Proves that a route can be described, before it is served.
 *
 * @throws TypeError that names the route and what of it cannot be expressed
 */
export function assertExpressible(route: Route): void {
    describe({ name: 'core', prefix: '', routes: [route] }, route, {
        name: (schema) => schema,
        share: (_name, response) => response
    });
}

function build(servers: readonly DescribedServer[], version: string): OpenApiDocument {
    const components = sharedComponents();
    const { schemas = {}, responses = {} } = components;
    const shared: Shared = {
        name: createNames(schemas),
        share(name, response) {
            responses[name] ??= response;
            return { $ref: `#/components/responses/${name}` };
        }
    };
    const paths: Record<string, Record<string, Operation>> = {};
    const templates = new Map<string, string>();
    for (const server of servers) {
        for (const route of server.routes) {
            const path = fullPath(server.prefix, route.path);
            for (const [method, operation] of describe(server, route, shared)) {
                const { key, operation: placed } = place(path, method, operation, paths, templates);
                (paths[key] ??= {})[method] = placed;
            }
        }
    }
    const operations = Object.values(paths).flatMap((item) => Object.values(item));
    const tags = [...new Set(operations.flatMap((operation) => operation.tags))];
    return {
        openapi: '3.1.0',
        info: {
            title: 'Portico',
            version,
            license: { name: 'MIT', identifier: 'MIT' },
            description:
                'Every JSON answer is `{ code, message, data }`. `code` is 0, or the HTTP status × 100 plus a detail; `data.reason` of a failure is stable. Numbers beyond ±(2^53 − 1), unknown fields and other types than the documented ones are refused.'
        },
        servers: [{ url: '/' }],
        security: [{ bearer: [] }],
        tags: tags.map((name) => ({
            name,
            ...describeTag(name, servers),
            ...resourcesOf(operations.filter((each) => each.tags.includes(name)))
        })),
        paths: withLinks(paths, schemas),
        components: withoutUnused(withScopes(components, paths), paths)
    };
}

/** Lists the permissions that the protected resources ask for as scopes of OAuth; without such a resource, there is no scheme for it. */
function withScopes(components: Components, paths: OpenApiDocument['paths']): Components {
    const { oauth, ...others } = components['securitySchemes'] ?? {};
    const asked = Object.values(paths)
        .flatMap((item) => Object.values(item))
        .flatMap(({ security }) =>
            security.flatMap((scheme) => ('oauth' in scheme ? [scheme['oauth']] : []))
        );
    if (oauth === undefined || asked.length === 0) {
        return { ...components, securitySchemes: others };
    }
    const { authorizationCode } = oauth['flows'] as { readonly authorizationCode: JsonSchema };
    const scopes = Object.fromEntries(
        (asked as string[][]).flat().map((name) => [name, `The permission ${name}`])
    );
    const flows = { authorizationCode: { ...authorizationCode, scopes } };
    return { ...components, securitySchemes: { ...others, oauth: { ...oauth, flows } } };
}

type Shared = Pick<OperationInput, 'name' | 'share'>;

function describe(server: DescribedServer, route: Route, shared: Shared): [string, Operation][] {
    try {
        return operationOf({ route, server, ...shared });
    } catch (error) {
        throw new TypeError(
            `Route ${route.method} ${fullPath(server.prefix, route.path)} (${route.id}) cannot be described: ${(error as Error).message}`,
            { cause: error }
        );
    }
}

/** Two templates that differ in a parameter's name only are one path to OpenAPI: the name that came first holds. */
function place(
    path: string,
    method: string,
    operation: Operation,
    paths: Readonly<Record<string, object>>,
    templates: Map<string, string>
): { key: string; operation: Operation } {
    const { template } = templateOf(path);
    const shape = template.replace(/\{\w+\}/g, '{}');
    const first = templates.get(shape) ?? template;
    if (first === template || method in (paths[first] ?? {})) {
        templates.set(shape, first);
        return { key: template, operation };
    }
    const from = [...template.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
    const to = [...first.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
    return {
        key: first,
        operation: {
            ...operation,
            parameters: operation.parameters.map((each) =>
                each['in'] === 'path' ? { ...each, name: to[from.indexOf(each['name'] as string)] } : each
            )
        }
    };
}

function resourcesOf(operations: readonly Operation[]): Pick<Tag, 'x-resources'> {
    const named = new Set(operations.flatMap(({ 'x-audit': entry }) => entry?.['resource'] ?? []));
    return named.size === 0 ? {} : { 'x-resources': [...named].map(String) };
}

function describeTag(name: string, servers: readonly DescribedServer[]): Omit<Tag, 'name'> {
    const plugin = servers.find((server) => server.prefix === `/api/plugins/${name}`);
    if (plugin === undefined) {
        return { description: `Routes of the core below /api/${name}` };
    }
    const { title, icon, group, pages, locales } = plugin.about ?? { title: name };
    return {
        description: `Routes of the plugin ${name}`,
        'x-summary': title,
        'x-kind': 'nav',
        ...(group === undefined ? {} : { 'x-parent': group }),
        ...(icon === undefined ? {} : { 'x-icon': icon }),
        ...(pages === undefined ? {} : { 'x-pages': pages }),
        ...(locales === undefined ? {} : { 'x-locales': locales })
    };
}

type Components = Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;

/** Leaves out components that nothing refers to. */
function withoutUnused(components: Components, paths: OpenApiDocument['paths']): Components {
    const used = new Set<string>();
    const collect = (value: unknown): void => {
        for (const [, reference = ''] of JSON.stringify(value).matchAll(
            /"\$ref":"#\/components\/([^"]+)"/g
        )) {
            if (!used.has(reference)) {
                used.add(reference);
                const [kind = '', name = ''] = reference.split('/');
                collect(components[kind]?.[name] ?? null);
            }
        }
    };
    collect(paths);
    return Object.fromEntries(
        Object.entries(components).map(([kind, all]) => [
            kind,
            kind === 'securitySchemes'
                ? all
                : Object.fromEntries(Object.entries(all).filter(([name]) => used.has(`${kind}/${name}`)))
        ])
    );
}
