/** Resources: the panel's API description, who asks, and every JSON or text route that reads. */
import {
    type Resource,
    ResourceNotFoundError,
    type ResourceTemplateType
} from '@modelcontextprotocol/server';
import { type ToolArguments, toolName } from '@portico/agents';
import type { RouteInfo } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { textOf, type Truncated } from '../tools/answer.ts';
import type { Catalogue } from '../tools/catalogue.ts';
import type { OwnTools } from '../tools/own-tools.ts';
import { readRoute } from '../tools/reads.ts';
import type { Visit } from './visit.ts';

/** The content of a resource, as the protocol sends it. */
export interface Content {
    readonly uri: string;
    readonly mimeType: string;
    readonly text: string;
    readonly _meta?: { readonly 'portico/truncated': Truncated | { readonly bytes: number } };
}

const json = 'application/json';
const openapiPath = '/api/openapi.json';
const openapiBytes = 16_777_216;
const readSeconds = 10;

/** The resources of the panel. */
export class Resources {
    readonly #ctx: Ctx;
    readonly #catalogue: Catalogue;
    readonly #own: OwnTools;

    constructor(ctx: Ctx, catalogue: Catalogue, own: OwnTools) {
        this.#ctx = ctx;
        this.#catalogue = catalogue;
        this.#own = own;
    }

    /** Those with an address of their own. */
    list(): Resource[] {
        return [
            {
                uri: 'portico://openapi',
                name: 'openapi',
                title: 'The API as an OpenAPI document',
                mimeType: json
            },
            { uri: 'portico://whoami', name: 'whoami', title: 'The user that you act for', mimeType: json }
        ];
    }

    /** Those whose address is made. */
    templates(): ResourceTemplateType[] {
        return [
            {
                uriTemplate: 'portico://api/{+path}',
                name: 'api',
                title: 'What a GET of the API answers',
                description: 'Such as portico://api/hosts?limit=10'
            }
        ];
    }

    /** @throws ResourceNotFoundError for what the caller cannot read */
    async read(visit: Visit, uri: string): Promise<Content> {
        if (uri === 'portico://whoami') {
            return { uri, mimeType: json, text: JSON.stringify(this.#own.whoami(visit)) };
        }
        const address = URL.parse(uri.replace(/^portico:\/\/(?:openapi$|api\/)/, 'http://panel.invalid/'));
        if (address === null || !uri.startsWith('portico://')) {
            throw new ResourceNotFoundError(uri);
        }
        const path = uri === 'portico://openapi' ? openapiPath : `/api${address.pathname}`;
        const routes = await this.#ctx.api.routes({ for: visit.actor, effect: 'read' });
        const found = routes
            .map((info) => ({ info, params: match(info, path) }))
            .find(({ params }) => params !== null);
        if (found === undefined || !this.#mayRead(found.info, visit.areas)) {
            throw new ResourceNotFoundError(uri);
        }
        const { info, params } = found;
        const given = { params: params ?? {}, query: Object.fromEntries(address.searchParams) };
        return info.kind === 'json'
            ? this.#answer(visit, uri, info, given)
            : this.#text(visit, uri, info, given);
    }

    /** What a tool of this route answers. */
    async #answer(
        { actor, signal }: Visit,
        uri: string,
        info: RouteInfo,
        given: ToolArguments
    ): Promise<Content> {
        const answer = await readRoute(this.#ctx, actor, info, given, signal);
        if (answer.code !== 0) {
            throw unreadable(uri, answer.code);
        }
        const { truncated } = answer;
        return {
            uri,
            mimeType: json,
            text: textOf(answer),
            ...(truncated === undefined ? {} : { _meta: { 'portico/truncated': truncated } })
        };
    }

    /** A text as it is. */
    async #text(
        { actor, signal }: Visit,
        uri: string,
        { id, path }: RouteInfo,
        given: ToolArguments
    ): Promise<Content> {
        const maxBytes = path === openapiPath ? openapiBytes : this.#ctx.settings.resultBytes;
        const limits = { maxBytes, maxSeconds: readSeconds };
        const { code, type, text, truncated } = await this.#ctx.api.read(
            actor,
            { id, ...given, signal },
            limits
        );
        const mimeType = type?.split(';', 1)[0] ?? json;
        if (code !== 0 || !/^text\/|^application\/(?:.*\+)?(?:json|xml|yaml)$/.test(mimeType)) {
            throw unreadable(uri, code);
        }
        const bytes = Buffer.byteLength(text);
        return {
            uri,
            mimeType,
            text,
            ...(truncated ? { _meta: { 'portico/truncated': { bytes } } } : {})
        };
    }

    /** What is dangerous is approved before it is read, and a resource cannot wait for that. */
    #mayRead(info: RouteInfo, areas: Visit['areas']): boolean {
        const isDocument = info.path === openapiPath;
        return (
            isDocument ||
            ((info.tool || info.kind === 'download') &&
                !info.dangerous &&
                (areas === null || areas.includes(info.id.split('.', 1)[0] ?? '')) &&
                this.#catalogue.isOffered(toolName(info.id), info))
        );
    }
}

function unreadable(uri: string, code: number): ResourceNotFoundError {
    return new ResourceNotFoundError(uri, `Not readable (${code}): ${uri}`);
}

/** The parameters of a path; null where it is not the route's. A route with fixed parts is as good as one with parameters: the first wins. */
function match({ method, path: template }: RouteInfo, path: string): Record<string, string> | null {
    if (method !== 'GET' && template !== openapiPath) {
        return null;
    }
    const pattern = template
        .split(/(\{\w+\*?\})/)
        .map((part) => {
            const [, name, rest] = /^\{(\w+)(\*?)\}$/.exec(part) ?? [];
            return name === undefined
                ? part.replaceAll(/[.*+?^$()|[\]\\{}]/g, '\\$&')
                : `(?<${name}>${rest === '*' ? '.+' : '[^/]+'})`;
        })
        .join('');
    const groups = new RegExp(`^${pattern}$`).exec(path)?.groups;
    if (groups === undefined) {
        return template === path ? {} : null;
    }
    try {
        return Object.fromEntries(
            Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)])
        );
    } catch {
        return null;
    }
}
