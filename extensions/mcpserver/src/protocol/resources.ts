/** Resources: the panel's API description, who asks, and every JSON or text route that reads. */
import {
    type Resource,
    ResourceNotFoundError,
    type ResourceTemplateType
} from '@modelcontextprotocol/server';
import { toolName } from '@portico/agents';
import type { RouteInfo } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { Catalogue } from '../tools/catalogue.ts';
import type { OwnTools } from '../tools/own-tools.ts';
import type { Visit } from './visit.ts';

/** A resource's content. */
export interface Content {
    readonly uri: string;
    readonly mimeType: string;
    readonly text: string;
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
        const isDocument = uri === 'portico://openapi';
        const path = isDocument ? openapiPath : `/api${address.pathname}`;
        return this.#get(
            visit,
            uri,
            path,
            address,
            isDocument ? openapiBytes : this.#ctx.settings.resultBytes
        );
    }

    async #get(
        { actor, signal, areas }: Visit,
        uri: string,
        path: string,
        address: URL,
        maxBytes: number
    ): Promise<Content> {
        const routes = await this.#ctx.api.routes({ for: actor, effect: 'read' });
        const found = routes
            .map((info) => ({ info, params: match(info, path) }))
            .find(({ params }) => params !== null);
        if (found === undefined || !this.#mayRead(found.info, areas)) {
            throw new ResourceNotFoundError(uri);
        }
        const query = Object.fromEntries(address.searchParams);
        const call = { id: found.info.id, params: found.params ?? {}, query, signal };
        const answer = await this.#ctx.api.read(actor, call, { maxBytes, maxSeconds: readSeconds });
        const type = answer.type?.split(';', 1)[0] ?? json;
        if (answer.code !== 0 || !/^text\/|^application\/(?:.*\+)?(?:json|xml|yaml)$/.test(type)) {
            throw new ResourceNotFoundError(uri, `Not readable (${answer.code}): ${uri}`);
        }
        return { uri, mimeType: type, text: answer.text };
    }

    #mayRead(info: RouteInfo, areas: Visit['areas']): boolean {
        const isDocument = info.path === openapiPath;
        return (
            isDocument ||
            ((info.tool || info.kind === 'download') &&
                (areas === null || areas.includes(info.id.split('.', 1)[0] ?? '')) &&
                this.#catalogue.isOffered(toolName(info.id), info))
        );
    }
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
