/** Turns a handler's answer into JSON text, in the guest runtime that holds the answer. */
import { type AnySchema, joiSchemaOf } from '../../../joi.ts';
import { isReply } from '../../../routes/reply.ts';
import type { EventSchemas, StreamEvent } from '../../../routes/route.ts';
import type { JsonAnswer, RouteDocument } from '../../protocol.ts';

/** What an answer is held against, in tests and development. */
export interface AnswerCheck {
    readonly returns: AnySchema | null;
    readonly document: Pick<RouteDocument, 'answers'>;
}

/** Characters of JSON. A larger answer is made, held and sent as one piece, while the whole panel waits. */
const mostCharacters = 16 * 1024 * 1024;

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});
const statuses = { done: 200, made: 201, task: 202 } as const;
type Declared = (typeof statuses)[keyof typeof statuses];

/**
 * Turns an answer or a reply into JSON text.
 *
 * @throws TypeError when the answer is no object, list or nothing, or is larger than 16 MiB; with a check, also when it is not what the route declares
 */
export function serialise(answer: unknown, check: AnswerCheck | null, route: string): JsonAnswer {
    const reply = isReply(answer) ? answer : null;
    const json = JSON.stringify(reply === null ? answer : reply.data) ?? 'null';
    requireObject(json, route);
    if (json.length > mostCharacters) {
        throw new TypeError(
            `${route} answers with ${Math.ceil(json.length / 1024 / 1024)} MiB, and 16 are allowed: answer in pages, or with a download`
        );
    }
    if (check !== null) {
        requireDeclared(check, json, reply?.status ?? 200, route);
    }
    if (reply !== null) {
        return { status: Number(reply.status), message: String(reply.message), headers: reply.headers, json };
    }
    const version = (answer as { version?: unknown } | null | undefined)?.version;
    const headers = typeof version === 'number' ? { etag: `"${version}"` } : noHeaders;
    return { status: 200, message: 'ok', headers, json };
}

/** Holds an answer against what its route declares. */
function requireDeclared(
    { returns, document: { answers } }: AnswerCheck,
    json: string,
    status: number,
    route: string
): void {
    if (returns !== null) {
        requireFit(returns, JSON.parse(json), `${route} answers what its schema does not say`);
    }
    const declared = answers === undefined ? [] : [answers].flat().map((each) => statuses[each]);
    if (declared.length > 0 && status < 400 && !declared.includes(status as Declared)) {
        throw new TypeError(
            `${route} answers with the status ${status}, and declares ${declared.join(', ')}`
        );
    }
}

/** A text, number or flag has no name, so nothing could ever be added to the answer: most often it is a message that belongs elsewhere. */
function requireObject(json: string, route: string): void {
    if (!json.startsWith('{') && !json.startsWith('[') && json !== 'null') {
        throw new TypeError(
            `${route} answers with a ${typeof JSON.parse(json)}: return an object, a list or null, or an answer of \`reply\``
        );
    }
}

/** The events of a stream, each held against its schema. @throws TypeError when one does not fit, or is not declared */
export async function* checkedEvents(
    events: AsyncIterable<StreamEvent>,
    schemas: EventSchemas,
    route: string
): AsyncGenerator<StreamEvent> {
    for await (const event of events) {
        const name = event.event ?? 'message';
        const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
        if (schema === undefined) {
            throw new TypeError(`${route} sends an event ${name}, which it does not declare`);
        }
        const data: unknown = JSON.parse(JSON.stringify(event.data) ?? 'null');
        requireFit(schema, data, `${route} sends an event ${name} that its schema does not say`);
        yield event;
    }
}

function requireFit(schema: AnySchema, value: unknown, said: string): void {
    const { error } = joiSchemaOf(schema).validate(value, { convert: false, abortEarly: false });
    if (error !== undefined) {
        throw new TypeError(`${said}: ${error.message}`);
    }
}
