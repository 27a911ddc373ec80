/** Types of a plugin's operations for its pages, made from the panel's document: what `connect<Operations>()` of the SDK takes. */

type Schema = Readonly<Record<string, unknown>>;

interface Operation {
    readonly operationId?: string;
    readonly parameters?: readonly {
        readonly name: string;
        readonly in: string;
        readonly required?: boolean;
        readonly schema?: Schema;
    }[];
    readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
    readonly responses?: Readonly<
        Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }>
    >;
    readonly 'x-door'?: string;
}

/** The part of the document that is read. */
export interface OperationsDocument {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

const deepest = 8;
/** What a page cannot call: sockets, and raw routes as those of static files and of the pages themselves. */
const beyondPages = new Set(['socket', 'http']);

/** Writes the module with the types. @param isWanted - whether an operation belongs into it, by its id */
export function operationTypes(
    document: OperationsDocument,
    isWanted: (operationId: string) => boolean
): string {
    const schemas = document.components?.schemas ?? {};
    const entries = Object.values(document.paths)
        .flatMap((methods) => Object.values(methods))
        .flatMap((operation) => {
            const { operationId = '', 'x-door': kind = 'json' } = operation;
            return isWanted(operationId) && !beyondPages.has(kind)
                ? [[operationId, describe(operation, schemas)] as const]
                : [];
        })
        .sort(([a], [b]) => (a < b ? -1 : 1));
    const lines = entries.map(([id, text]) => `    readonly ${JSON.stringify(id)}: ${text};`);
    return `// Made from the routes by \`portico plugin dev\`: it is written again after each save.\nexport interface Operations {\n${lines.join('\n')}\n}\n`;
}

function describe(operation: Operation, schemas: Readonly<Record<string, Schema>>): string {
    const { parameters = [], requestBody, 'x-door': kind = 'json' } = operation;
    const parts: string[] = [];
    for (const place of ['path', 'query']) {
        const own = parameters.filter((each) => each.in === place);
        if (own.length > 0) {
            const isRequired = own.some(({ required = false }) => required);
            parts.push(
                `readonly ${place}${isRequired ? '' : '?'}: { ${own
                    .map(({ name, required = false, schema = {} }) =>
                        member(name, required, typeOf(schema, schemas, 0))
                    )
                    .join(' ')} }`
            );
        }
    }
    const body = requestBody?.content['application/json']?.schema;
    if (body !== undefined) {
        parts.push(`readonly body: ${typeOf(body, schemas, 0)}`);
    }
    parts.push(`readonly data: ${kind === 'download' ? 'Blob' : dataOf(operation, schemas)}`);
    return `{ ${parts.join('; ')} }`;
}

/** The type of `data` in the envelopes of success. */
function dataOf({ responses = {} }: Operation, schemas: Readonly<Record<string, Schema>>): string {
    const kinds = Object.entries(responses)
        .filter(([status]) => status.startsWith('2'))
        .map(([, { content = {} }]) => resolve(content['application/json']?.schema ?? {}, schemas))
        .map(({ properties }) => (properties as Schema | undefined)?.['data'] as Schema | undefined)
        .map((data) => typeOf(data ?? {}, schemas, 0));
    return union(kinds);
}

function typeOf(schema: Schema, schemas: Readonly<Record<string, Schema>>, depth: number): string {
    const target = resolve(schema, schemas);
    if (depth > deepest) {
        return 'unknown';
    }
    const inner = (each: unknown): string => typeOf(each as Schema, schemas, depth + 1);
    const { const: constant, enum: values, oneOf, anyOf, allOf, type } = target;
    if (constant !== undefined) {
        return JSON.stringify(constant);
    }
    if (Array.isArray(values)) {
        return union(values.map((value) => JSON.stringify(value)));
    }
    const choices = oneOf ?? anyOf;
    if (Array.isArray(choices)) {
        return union(choices.map(inner));
    }
    if (Array.isArray(allOf)) {
        return allOf.map((each) => `(${inner(each)})`).join(' & ');
    }
    return union((Array.isArray(type) ? type : [type]).map((each) => plain(each, target, inner)));
}

function plain(type: unknown, schema: Schema, inner: (schema: unknown) => string): string {
    switch (type) {
        case 'string':
        case 'boolean':
        case 'null':
            return type;
        case 'number':
        case 'integer':
            return 'number';
        case 'array':
            return `readonly (${inner(schema['items'] ?? {})})[]`;
        case 'object':
            return objectOf(schema, inner);
        default:
            return 'unknown';
    }
}

function objectOf(schema: Schema, inner: (schema: unknown) => string): string {
    const required = new Set((schema['required'] as readonly string[] | undefined) ?? []);
    const members = Object.entries((schema['properties'] as Schema | undefined) ?? {}).map(([name, each]) =>
        member(name, required.has(name), inner(each))
    );
    const { additionalProperties: more } = schema;
    if (members.length > 0) {
        return `{ ${members.join(' ')} }`;
    }
    return `Readonly<Record<string, ${typeof more === 'object' ? inner(more) : 'unknown'}>>`;
}

const member = (name: string, isRequired: boolean, type: string): string =>
    `readonly ${JSON.stringify(name)}${isRequired ? '' : '?'}: ${type};`;

function union(types: readonly string[]): string {
    const all = [...new Set(types)];
    return all.length === 0 || all.includes('unknown') ? 'unknown' : all.join(' | ');
}

function resolve(schema: Schema, schemas: Readonly<Record<string, Schema>>): Schema {
    const { $ref } = schema;
    return typeof $ref === 'string' ? (schemas[$ref.split('/').pop() ?? ''] ?? {}) : schema;
}
