/** A route of the catalogue as a tool of an agent. */
import type { JsonSchema, RouteInfo } from '@portico/sdk';

/** What a tool does, as agents are told (Model Context Protocol, `ToolAnnotations`). */
export interface ToolHints {
    readonly title: string;
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    /** A second call with the same arguments changes nothing more. */
    readonly idempotentHint: boolean;
    /** Always false: tools act on this panel alone. */
    readonly openWorldHint: false;
}

/** The name of a route's tool: names of functions have no dots. */
export function toolName(routeId: string): string {
    return routeId.replaceAll('.', '__');
}

/** The arguments of a route's tool: an object of `params`, `query` and `payload`, as far as the route has them. */
export function toolSchema({
    path,
    params,
    query,
    payload
}: RouteInfo): JsonSchema & { readonly type: 'object' } {
    const parts = { params: path.includes('{') ? (params ?? {}) : null, query, payload };
    const given = Object.entries(parts).filter((entry): entry is [string, JsonSchema] => entry[1] !== null);
    const required = given
        .filter(([name, schema]) => name === 'params' || isNeeded(schema))
        .map(([name]) => name);
    return {
        type: 'object',
        properties: Object.fromEntries(given),
        ...(required.length === 0 ? {} : { required }),
        additionalProperties: false
    };
}

/** What the agent is told of a route's effect. */
export function toolHints({ summary, effect, method }: RouteInfo): ToolHints {
    return {
        title: summary,
        readOnlyHint: effect === 'read',
        destructiveHint: effect === 'destructive',
        idempotentHint: effect === 'read' || ['GET', 'PUT', 'DELETE'].includes(method),
        openWorldHint: false
    };
}

function isNeeded({ required }: JsonSchema): boolean {
    return Array.isArray(required) && required.length > 0;
}
