/** The operations of one tag, in the shape that the generated pages need. */
import { type Document, type OperationUi, type RawOperation, resolve } from '../schema/document.ts';
import { inWords, type Schema } from '../schema/schema.ts';
import { t } from '../words/t.ts';

/** One operation. */
export interface Operation {
    readonly id: string;
    readonly method: string;
    /** Path with its parameters in braces, `/api` included. */
    readonly path: string;
    readonly title: string;
    readonly description: string | undefined;
    readonly kind: 'json' | 'stream' | 'download' | 'other';
    readonly permission: string | undefined;
    readonly effect: 'read' | 'write' | 'destructive';
    readonly ui: OperationUi;
    readonly params: readonly string[];
    readonly query: readonly QueryParameter[];
    readonly body: Schema | null;
    /** Schema of `data` in the answer; of an event for a stream. */
    readonly answer: Schema;
    /** The answer is a list of objects. */
    readonly isList: boolean;
    /** The answer is a task, not the end of the work. */
    readonly isTask: boolean;
}

/** Values of the path's parameters, by name. */
export type Params = Readonly<Record<string, string>>;

/** A parameter of the query. */
export interface QueryParameter {
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
        query: (raw.parameters ?? [])
            .filter((each) => each.in === 'query')
            .map((each) => ({
                name: each.name,
                isRequired: each.required === true,
                schema: resolve(document, {
                    ...(each.description === undefined ? {} : { description: each.description }),
                    ...each.schema
                })
            })),
        body: bodyOf(document, raw),
        answer,
        isList: answer.type === 'array',
        isTask: statuses.includes('202') && !statuses.includes('200') && !statuses.includes('201')
    };
}

function kindOf({ 'x-door': kind = 'json' }: RawOperation): Operation['kind'] {
    return kind === 'json' || kind === 'stream' || kind === 'download' ? kind : 'other';
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
