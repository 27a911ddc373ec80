/**
 * Calls of tools that only read, in the stateless revision: answered past the protocol's library, which costs more for each of them than the
 * route itself. What is not exactly of this form is none of them, and the library answers it, as it answers everything that is wrong.
 */
import { textOf, type ToolAnswer } from '../tools/answer.ts';
import { type Catalogue, isPlainRead } from '../tools/catalogue.ts';
import { ownToolNames } from '../tools/own-tools.ts';
import type { ToolRunner } from '../tools/run.ts';
import { aboutServer } from './about.ts';
import type { Visit } from './visit.ts';

/** What {@link DirectCalls} needs. */
export interface DirectCallsOptions {
    readonly version: string;
    readonly catalogue: Catalogue;
    readonly runner: ToolRunner;
}

/** One call, as the client sent it. */
interface DirectCall {
    readonly id: string | number;
    readonly name: string;
    readonly given: unknown;
    /** How the client calls itself. */
    readonly client: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

const revision = '2026-07-28';
const prefix = 'io.modelcontextprotocol';
const versionKey = `${prefix}/protocolVersion`;
const clientKey = `${prefix}/clientInfo`;
const capabilitiesKey = `${prefix}/clientCapabilities`;

/** Answers calls of tools that only read, in the stateless revision of the protocol, without the protocol's library. */
export class DirectCalls {
    readonly #catalogue: Catalogue;
    readonly #runner: ToolRunner;
    readonly #about: object;

    constructor({ version, catalogue, runner }: DirectCallsOptions) {
        this.#catalogue = catalogue;
        this.#runner = runner;
        this.#about = { [`${prefix}/serverInfo`]: aboutServer(version) };
    }

    /** @returns null for everything else */
    async answer(headers: Headers, body: unknown, visit: Visit): Promise<Response | null> {
        const call = callIn(headers, body);
        if (call === null || !(await this.#onlyReads(visit, call.name))) {
            return null;
        }
        const { id, name, given, client } = call;
        const outcome = await this.#runner.run(visit, name, given, {
            progress: () => undefined,
            signal: visit.signal,
            client,
            canAsk: false,
            answered: null
        });
        return outcome === undefined || 'ask' in outcome ? null : this.#respond(id, outcome.answer);
    }

    async #onlyReads(visit: Visit, name: string): Promise<boolean> {
        const tool = ownToolNames.has(name) ? null : await this.#catalogue.find(visit, name);
        return tool === null || (tool !== undefined && isPlainRead(tool.info));
    }

    /** The answer's JSON stands in it twice: as text, and as content with a structure. */
    #respond(id: string | number, answer: ToolAnswer): Response {
        const text = textOf(answer);
        const { truncated } = answer;
        const about = JSON.stringify({
            ...(truncated === undefined ? {} : { 'portico/truncated': truncated }),
            ...this.#about
        });
        const result = `{"content":[{"type":"text","text":${JSON.stringify(text)}}],"structuredContent":${text},"isError":${answer.code !== 0},"resultType":"complete","_meta":${about}}`;
        return new Response(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`, {
            headers: { 'content-type': 'application/json' }
        });
    }
}

function callIn(headers: Headers, body: unknown): DirectCall | null {
    if (!isObject(body) || !hasOnly(body, ['jsonrpc', 'id', 'method', 'params'])) {
        return null;
    }
    const { jsonrpc, id, method, params } = body;
    if (
        jsonrpc !== '2.0' ||
        method !== 'tools/call' ||
        !(typeof id === 'string' || Number.isSafeInteger(id)) ||
        !isObject(params) ||
        !hasOnly(params, ['name', 'arguments', '_meta'])
    ) {
        return null;
    }
    const { name, arguments: given, _meta: meta } = params;
    const isPlain =
        typeof name === 'string' &&
        (given === undefined || isObject(given)) &&
        isObject(meta) &&
        hasOnly(meta, [versionKey, clientKey, capabilitiesKey]) &&
        meta[versionKey] === revision &&
        isObject(meta[capabilitiesKey]) &&
        Object.values(meta[capabilitiesKey]).every(isObject) &&
        headers.get('mcp-protocol-version') === revision &&
        headers.get('mcp-method') === method &&
        headers.get('mcp-name') === name;
    const client = isPlain ? nameIn(meta[clientKey]) : null;
    return isPlain && client !== null ? { id: id as string | number, name, given, client } : null;
}

/** The name in what a client says of itself; null where that is of another form. */
function nameIn(client: unknown): string | null {
    return isObject(client) &&
        hasOnly(client, ['name', 'title', 'version']) &&
        typeof client['name'] === 'string' &&
        Object.values(client).every((text) => typeof text === 'string')
        ? client['name'].slice(0, 100)
        : null;
}

function isObject(value: unknown): value is Fields {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasOnly(value: object, names: readonly string[]): boolean {
    return Object.keys(value).every((name) => names.includes(name));
}
