/** The operations of one tag, in the shape that the generated pages need. */
import { type Document, type OperationUi, type RawOperation, resolve } from '../schema/document.ts';
import { inWords, plain, type Schema } from '../schema/schema.ts';
import { t } from '../words/t.ts';

/** A file that an operation takes. */
interface FileInput {
    /** Media types. */
    readonly accepts: readonly string[];
    readonly maxBytes: number;
}

/** One operation of the OpenAPI document, as the generated pages use it. */
export interface Operation {
    readonly id: string;
    readonly method: string;
    /** Path with its parameters in braces, `/api` included. */
    readonly path: string;
    readonly title: string;
    readonly description: string | undefined;
    readonly kind: 'json' | 'stream' | 'upload' | 'download' | 'other';
    readonly permission: string | undefined;
    readonly effect: 'read' | 'write' | 'destructive';
    readonly ui: OperationUi;
    readonly params: readonly string[];
    readonly choices: readonly string[];
    /** The parameters of the path, with what they may be. */
    readonly places: readonly Parameter[];
    readonly query: readonly Parameter[];
    readonly body: Schema | null;
    /** The file that it takes. */
    readonly file: FileInput | null;
    /** Schema of `data` in the answer; of an event for a stream. */
    readonly answer: Schema;
    /** The answer is a list of objects. */
    readonly isList: boolean;
    readonly rowKeys: readonly string[];
    /** The answer is a task, not the end of the work. */
    readonly isTask: boolean;
}

/** Values of the path's parameters, by name. */
export type Params = Readonly<Record<string, string>>;

/** A parameter of the path or of the query. */
export interface Parameter {
    readonly name: string;
    readonly isRequired: boolean;
    readonly schema: Schema;
}

/** Reads all operations of a tag, in the document's order. */
export function operationsOf(document: Document, tag: string): readonly Operation[] {
    return Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods)
            .filter(([, raw]) => raw.tags?.includes(tag) === true)
            .map(([method, raw]) => read(document, method.toUpperCase(), path, raw))
    );
}

function read(document: Document, method: string, path: string, raw: RawOperation): Operation {
    const ui = raw['x-ui'] ?? {};
    const statuses = Object.keys(raw.responses ?? {});
    const answer = answerOf(document, raw);
    const places = parametersOf(document, raw, 'path');
    return {
        id: raw.operationId ?? `${method} ${path}`,
        method,
        path,
        title: ui.title ?? shortTitle(method, path, raw) ?? raw.summary ?? path,
        description: raw.description,
        kind: kindOf(raw),
        permission: raw['x-permission'],
        effect: raw['x-effect'] ?? (method === 'GET' ? 'read' : 'write'),
        ui,
        params: [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name ?? ''),
        choices: places.filter(({ schema }) => isChoice(schema)).map((each) => each.name),
        places,
        query: parametersOf(document, raw, 'query'),
        body: bodyOf(document, raw),
        file: fileOf(raw),
        answer,
        isList: answer.type === 'array',
        rowKeys: Object.keys(answer.items?.properties ?? {}),
        isTask: statuses.includes('202') && !statuses.includes('200') && !statuses.includes('201')
    };
}

function kindOf({ 'x-door': kind = 'json' }: RawOperation): Operation['kind'] {
    return kind === 'socket' || kind === 'http' ? 'other' : kind;
}

/** What a list, and the usual work on its items, is called where the route does not say it. */
function shortTitle(method: string, path: string, { responses = {} }: RawOperation): string | null {
    const isItem = path.endsWith('}');
    switch (method) {
        case 'GET':
            return isItem ? null : inWords(path.split('/').pop() ?? '');
        case 'PUT':
            return isItem ? t('Change') : null;
        case 'DELETE':
            return isItem ? t('Remove') : null;
        case 'POST':
            return responses['201'] !== undefined && responses['200'] === undefined && !path.includes('{')
                ? t('New')
                : null;
        default:
            return null;
    }
}

function parametersOf(
    document: Document,
    { parameters = [] }: RawOperation,
    place: 'path' | 'query'
): readonly Parameter[] {
    return parameters
        .filter((each) => each.in === place)
        .map(({ name, required = false, description, schema }) => ({
            name,
            isRequired: required,
            schema: resolve(document, { ...(description === undefined ? {} : { description }), ...schema })
        }));
}

const isChoice = (schema: Schema): boolean =>
    plain(schema).choices.length > 0 || schema['x-ui']?.ref !== undefined;

function fileOf({ 'x-door': kind, requestBody }: RawOperation): FileInput | null {
    return kind !== 'upload' || requestBody === undefined
        ? null
        : {
              accepts: Object.keys(requestBody.content),
              maxBytes: requestBody['x-max-bytes'] ?? Number.POSITIVE_INFINITY
          };
}

function bodyOf(document: Document, { requestBody }: RawOperation): Schema | null {
    const schema = requestBody?.content['application/json']?.schema;
    return schema === undefined ? null : resolve(document, schema);
}

function answerOf(document: Document, { responses = {} }: RawOperation): Schema {
    const content = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1].content ?? {};
    const envelope = resolve(document, content['application/json']?.schema ?? {});
    const events = content['text/event-stream']?.['x-itemSchema'];
    return events === undefined ? (envelope.properties?.['data'] ?? {}) : resolve(document, events);
}
