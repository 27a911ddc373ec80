/** How a route can fail: what every route of its kind shares, and what it says of itself. */
import type { Failure } from '@portico/sdk';

import { fail, type Reason } from '../../../platform/errors.ts';
import type { JsonSchema } from '../json-schema/description.ts';
import { effectOf, type Route } from '../route.ts';
import { envelopeOf } from './envelope.ts';

/** The whole table of the core's failures, by reason; messages with their places unfilled. */
export const failures: ReadonlyMap<Reason, Failure> = new Map(
    Object.entries(fail).map(([reason, make]) => [reason as Reason, make()])
);

const text: JsonSchema = { type: 'string' };
const challenge: JsonSchema = {
    type: 'object',
    description: 'A fresh challenge, as GET /api/auth/login gives it'
};

/** What stands in `data` beside the reason. Only what is always there is required. */
const details: Readonly<
    Partial<
        Record<
            Reason,
            {
                readonly properties: Readonly<Record<string, JsonSchema>>;
                readonly required?: readonly string[];
            }
        >
    >
> = {
    VALIDATION_FAILED: {
        properties: {
            errors: {
                type: 'array',
                minItems: 1,
                items: {
                    type: 'object',
                    properties: {
                        path: { type: 'string', description: 'Dotted; empty for the whole' },
                        message: text
                    },
                    required: ['path', 'message'],
                    additionalProperties: false
                }
            },
            redirect: {
                type: 'string',
                description: 'Of an authorization: where the browser takes the error to the client'
            }
        },
        required: ['errors']
    },
    CHALLENGE_REQUIRED: { properties: { challenge }, required: ['challenge'] },
    CHALLENGE_INVALID: { properties: { challenge }, required: ['challenge'] },
    TOTP_REQUIRED: { properties: { challenge } },
    FORBIDDEN: { properties: { permission: text } },
    PLUGIN_NOT_FOUND: { properties: { plugin: text } },
    PLUGIN_DISABLED: { properties: { plugin: text } },
    CONFLICT: { properties: { field: text } },
    IN_USE: { properties: { by: { description: 'What depends on it' } } },
    CONSENT_REQUIRED: {
        properties: { missing: { description: 'What the plugin asks for beyond what was granted' } }
    },
    REFUSED_BY_PLUGIN: { properties: { plugin: text, hook: text } },
    VERSION_STALE: { properties: { version: { description: 'The present version' } } },
    PAYLOAD_TOO_LARGE: { properties: { limit: { type: 'integer', 'x-unit': 'bytes' } } },
    UNSUPPORTED_MEDIA_TYPE: { properties: { accepts: text } },
    ENGINE_REJECTED: { properties: { engine: { description: "The engine's own message" } } },
    RATE_LIMITED: { properties: { retryAfterSeconds: { type: 'number' } } },
    TOOL_MISSING: { properties: { tool: text, install: { type: 'string', description: 'What to run' } } },
    PLUGIN_FAILED: { properties: { plugin: text, stage: text, cause: {} } }
};

const anonymous = [
    'UNAUTHENTICATED',
    'TOKEN_INVALID',
    'TOKEN_EXPIRED',
    'TOKEN_REVOKED'
] as const satisfies readonly Reason[];
/** What the SDK lets any route of a plugin answer beside the plugin's own table, and what its absence answers. */
const ofPlugins = [
    'FORBIDDEN',
    'NOT_FOUND',
    'PLUGIN_DISABLED',
    'CONFLICT',
    'IN_USE',
    'VERSION_STALE',
    'TOOL_MISSING',
    'PLUGIN_FAILED',
    'STORAGE_FULL'
] as const satisfies readonly Reason[];

/** Every reason for which this route can refuse or fail, in the order of the table. */
export function reasonsOf(route: Route, path: string, isPlugin: boolean): Reason[] {
    const reads = effectOf(route) === 'read';
    const guarded = typeof route.access === 'string';
    const permission = guarded && route.access !== 'authenticated';
    const body = hasJsonBody(route);
    const reasons = new Set<Reason>([
        'BAD_REQUEST',
        'VALIDATION_FAILED',
        'INTERNAL',
        'NOT_READY',
        ...((route.fails ?? []) as readonly Reason[])
    ]);
    const add = (when: boolean, ...more: readonly Reason[]): void =>
        void (when && more.forEach((reason) => reasons.add(reason)));
    add(guarded, ...anonymous);
    add(permission || (guarded && (!reads || route.sessionOnly === true)), 'FORBIDDEN');
    add(guarded && route.whileLocked?.includes('password') !== true, 'PASSWORD_CHANGE_REQUIRED');
    add(guarded && route.whileLocked?.includes('totp') !== true, 'TOTP_SETUP_REQUIRED');
    add(route.stepUp === true, 'STEP_UP_REQUIRED');
    add(path.includes('{'), 'NOT_FOUND');
    add(body || route.kind === 'upload', 'UNSUPPORTED_MEDIA_TYPE');
    add(
        body ||
            route.kind === 'upload' ||
            (route.kind === 'http' && route.methods.some((method) => method !== 'GET')),
        'PAYLOAD_TOO_LARGE',
        'REQUEST_TIMEOUT'
    );
    add(route.kind === 'json' && isConditional(route), 'VERSION_STALE');
    add(isRepeatable(route, path), 'IDEMPOTENCY_MISMATCH', 'IDEMPOTENCY_UNRESOLVED');
    add(!reads, 'STORAGE_FULL');
    add(!reads && permission, 'CONFLICT', 'IN_USE');
    add(path.startsWith('/api/auth/'), 'RATE_LIMITED');
    add(isPlugin, ...ofPlugins);
    return [...failures.keys()].filter((reason) => reasons.has(reason));
}

/** Tells whether a route reads a JSON body. */
export function hasJsonBody(route: Route): boolean {
    return (
        (route.kind === 'json' && route.method !== 'GET') ||
        (route.kind === 'stream' && route.method === 'POST')
    );
}

/** Whether If-Match means something. */
export function isConditional(route: Route): boolean {
    return route.kind === 'json' && (route.method === 'PUT' || route.method === 'DELETE');
}

/** Whether an Idempotency-Key means something. */
export function isRepeatable(route: Route, path: string): boolean {
    return (
        route.kind === 'json' &&
        route.method === 'POST' &&
        typeof route.access === 'string' &&
        !path.startsWith('/api/auth/')
    );
}

/** Name of the component that describes a failure. */
export function failureName(reason: Reason): string {
    return `${pascal(reason)}Failure`;
}

/** Every failure of the core as a component. */
export function failureSchemas(): Record<string, JsonSchema> {
    return Object.fromEntries(
        [...failures.values()].map(({ code, reason, message }) => {
            const { properties = {}, required = [] } = details[reason as Reason] ?? {};
            const data = {
                type: 'object',
                properties: { reason: { type: 'string', const: reason }, ...properties },
                required: ['reason', ...required]
            };
            return [
                failureName(reason as Reason),
                { description: message, ...envelopeOf({ type: 'integer', const: code }, data) }
            ];
        })
    );
}

function pascal(reason: string): string {
    return reason.toLowerCase().replace(/(?:^|_)(\w)/g, (_all, letter: string) => letter.toUpperCase());
}
