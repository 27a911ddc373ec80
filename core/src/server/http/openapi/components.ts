/** What every document of ours shares, and the names of what its operations share. */
import type { JsonSchema } from '../json-schema/description.ts';
import { envelopeOf, failureData } from './envelope.ts';
import { failureSchemas } from './failures.ts';

const string = { type: 'string' };
const time = { type: ['string', 'null'], format: 'date-time' };

const task: JsonSchema = {
    type: 'object',
    description: 'Long work. Read it again at GET /api/tasks/{id}',
    properties: {
        id: { type: 'integer' },
        kind: string,
        state: { type: 'string', enum: ['queued', 'running', 'succeeded', 'failed', 'cancelled'] },
        progress: { type: ['number', 'null'], minimum: 0, maximum: 1 },
        createdAt: time,
        actor: { type: ['object', 'null'], description: 'Who started it, as in the audit log' },
        route: { type: ['string', 'null'], description: 'The operation that started it' },
        startedAt: time,
        finishedAt: time,
        result: {},
        error: {}
    },
    required: ['id', 'kind', 'state', 'progress', 'startedAt', 'finishedAt', 'result', 'error']
};

const parameter = (name: string, description: string, schema: JsonSchema = string): JsonSchema => ({
    name,
    in: 'header',
    description,
    schema
});
const header = (description: string, schema: JsonSchema = string): JsonSchema => ({ description, schema });

/** The scopes are filled in with the permissions that are asked for. */
const oauth: JsonSchema = {
    type: 'oauth2',
    description:
        'An access token of a client that a user authorized (OAuth 2.1 with PKCE), good below one path alone. The scopes are permissions',
    flows: {
        authorizationCode: {
            authorizationUrl: '/oauth/authorize',
            tokenUrl: '/api/auth/oauth/token',
            refreshUrl: '/api/auth/oauth/token',
            scopes: {}
        }
    }
};

/** The components that are always there. */
export function sharedComponents(): Record<string, Record<string, JsonSchema>> {
    return {
        schemas: {
            Failure: envelopeOf({ type: 'integer', minimum: 40_000, maximum: 59_999 }, failureData),
            Task: task,
            ...failureSchemas()
        },
        responses: {
            NotModified: {
                description: 'The client has it already',
                headers: { ETag: { $ref: '#/components/headers/ETag' } }
            }
        },
        parameters: {
            IfMatch: parameter(
                'If-Match',
                'The version that the change was made for, as in the ETag; 41200 when it is not the present one'
            ),
            IdempotencyKey: parameter(
                'Idempotency-Key',
                'The same key with the same request within 24 h gets the first answer again',
                { type: 'string', pattern: '^[\\x21-\\x7e]{1,128}$' }
            ),
            IfNoneMatch: parameter('If-None-Match', 'An ETag; 304 when it is the present one'),
            Range: parameter('Range', 'One range of bytes (RFC 9110 §14)'),
            IfRange: parameter(
                'If-Range',
                'An ETag or a date; the whole is sent when it is not the present one'
            ),
            LastEventId: parameter('Last-Event-ID', 'Id of the last event that arrived'),
            RequestId: parameter('X-Request-Id', 'Kept when it is of this form, made otherwise', {
                type: 'string',
                pattern: '^[A-Za-z0-9._-]{1,64}$'
            })
        },
        headers: {
            RequestId: { ...header('Names the request in the log and in the audit log'), required: true },
            ETag: header('`"<version>"` of an object, or a hash of a list'),
            Location: { ...header('Where the new object is read'), required: true },
            Link: header('`<…>; rel="next"`: the next page; absent on the last'),
            TotalCount: header('Rows in all pages, where counting is cheap', { type: 'integer' }),
            EngineReload: header('Whether the engine had to reload', {
                type: 'string',
                enum: ['true', 'false']
            }),
            RetryAfter: { ...header('Seconds', { type: 'integer', minimum: 1 }), required: true },
            Authenticate: { ...header('`Bearer`'), required: true },
            ContentDisposition: header('`inline` or `attachment`, with the name of the file'),
            ContentRange: header('Which part of the whole this is'),
            AcceptRanges: header('`bytes`, or `none` where the size is not known')
        },
        securitySchemes: {
            bearer: {
                type: 'http',
                scheme: 'bearer',
                bearerFormat: 'JWT',
                description:
                    "A session's token, or an API token. The roles listed with it are the permission that is needed"
            },
            oauth,
            ticket: {
                type: 'apiKey',
                in: 'query',
                name: 'ticket',
                description:
                    'A single-use ticket from POST /api/auth/tickets, for one GET of exactly that address'
            }
        }
    };
}

/** Gives names to schemas: equal ones share a name, and a name never means two things. */
export function createNames(
    schemas: Record<string, JsonSchema>
): (schema: JsonSchema, preferred: readonly string[]) => JsonSchema {
    const byContent = new Map(
        Object.entries(schemas).map(([name, schema]) => [JSON.stringify(schema), name])
    );
    return (schema, preferred) => {
        if (!('oneOf' in schema) && (schema['type'] !== 'object' || !('properties' in schema))) {
            return schema;
        }
        const content = JSON.stringify(schema);
        let name = byContent.get(content);
        if (name === undefined) {
            const last = preferred.at(-1) ?? 'Object';
            name = preferred.find((candidate) => !(candidate in schemas)) ?? firstFree(last, schemas);
            byContent.set(content, name);
            schemas[name] = schema;
        }
        return { $ref: `#/components/schemas/${name}` };
    };
}

function firstFree(name: string, taken: Readonly<Record<string, unknown>>): string {
    for (let number = 2; ; number += 1) {
        if (!(`${name}${number}` in taken)) {
            return `${name}${number}`;
        }
    }
}
