/** The input of a function as a model is shown it: the shape of the route, without what only pages need. */
import { toolSchema } from '@portico/agents';
import type { JsonSchema, RouteInfo } from '@portico/sdk';

import type { ModelTool } from '../providers/model.ts';

/** Characters of one function's input; a larger one loses its texts, then its depth. */
const mostCharacters = 6_000;
const mostDescription = 160;
/** Words of JSON Schema that say what a value must be. */
const kept = new Set([
    'type',
    'properties',
    'required',
    'items',
    'enum',
    'const',
    'oneOf',
    'anyOf',
    'allOf',
    'additionalProperties',
    'format',
    'pattern',
    'minimum',
    'maximum',
    'default',
    'description',
    'title'
]);

/** Whether a route is called without an approval because it only reads. */
export function readsAtOnce({ effect, dangerous }: RouteInfo): boolean {
    return effect === 'read' && !dangerous;
}

/** A route as a function. */
export function functionOf(info: RouteInfo, name: string): ModelTool {
    return {
        type: 'function',
        name,
        description: `${info.summary}${readsAtOnce(info) ? '' : ' (the user approves it first)'}`.slice(
            0,
            300
        ),
        inputSchema: inputOf(toolSchema(info)) as ModelTool['inputSchema']
    };
}

function inputOf(schema: JsonSchema): JsonSchema {
    const sizes = [
        { texts: true, depth: 12 },
        { texts: false, depth: 12 },
        { texts: false, depth: 5 },
        { texts: false, depth: 3 }
    ];
    let made: JsonSchema = {};
    for (const size of sizes) {
        made = slim(schema, size);
        if (JSON.stringify(made).length <= mostCharacters) {
            break;
        }
    }
    return made;
}

interface Size {
    readonly texts: boolean;
    /** Levels of objects and lists; what lies deeper may be anything. */
    readonly depth: number;
}

function slim(schema: JsonSchema, size: Size): JsonSchema {
    if (size.depth === 0) {
        return 'type' in schema ? { type: schema['type'] } : {};
    }
    const below = { ...size, depth: size.depth - 1 };
    const entries = Object.entries(schema)
        .filter(([key]) => kept.has(key) && (size.texts || (key !== 'description' && key !== 'title')))
        .filter(([key]) => key !== 'title' || !('description' in schema))
        .map(([key, value]) => [key, slimValue(key, value, below)]);
    return Object.fromEntries(entries) as JsonSchema;
}

function slimValue(key: string, value: unknown, size: Size): unknown {
    if (key === 'description' && typeof value === 'string') {
        return value.slice(0, mostDescription);
    }
    if (key === 'properties' && isSchema(value)) {
        // What only answers have is no input.
        const given = Object.entries(value).filter(
            ([, each]) => isSchema(each) && each['readOnly'] !== true
        ) as [string, JsonSchema][];
        return Object.fromEntries(given.map(([name, each]) => [name, slim(each, size)]));
    }
    if (['oneOf', 'anyOf', 'allOf'].includes(key) && Array.isArray(value)) {
        return value.map((each: unknown) => (isSchema(each) ? slim(each, size) : each));
    }
    return (key === 'items' || key === 'additionalProperties') && isSchema(value) ? slim(value, size) : value;
}

function isSchema(value: unknown): value is JsonSchema {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}
