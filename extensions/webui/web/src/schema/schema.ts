/** JSON Schema as the panel's document writes it, and how a page reads it. */
export interface Schema {
    readonly $ref?: string;
    readonly type?: string | readonly string[];
    readonly title?: string;
    readonly description?: string;
    readonly default?: unknown;
    readonly const?: unknown;
    readonly enum?: readonly unknown[];
    readonly format?: string;
    readonly examples?: readonly unknown[];
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
    readonly additionalProperties?: Schema | boolean;
    readonly items?: Schema;
    readonly oneOf?: readonly Schema[];
    readonly anyOf?: readonly Schema[];
    readonly allOf?: readonly Schema[];
    readonly minimum?: number;
    readonly maximum?: number;
    readonly minLength?: number;
    readonly maxLength?: number;
    readonly maxItems?: number;
    readonly readOnly?: boolean;
    readonly writeOnly?: boolean;
    readonly contentMediaType?: string;
    readonly 'x-unit'?: string;
    readonly 'x-ui'?: PropertyUi;
}

/** What a property says to the pages; the SDK's `ui` of a schema. */
export interface PropertyUi {
    readonly widget?: 'lines' | 'cron' | 'path' | 'host' | 'account' | 'hidden';
    readonly group?: string;
    readonly advanced?: boolean;
    readonly column?: number | false;
    readonly tones?: Readonly<Record<string, Tone>>;
    readonly ref?: string;
}

/** The meaning of a state's colour. */
export type Tone = 'good' | 'busy' | 'warning' | 'bad' | 'neutral';

/** One choice of a closed list. */
export interface Choice {
    readonly value: string | number | boolean;
    readonly title: string;
}

/** How a value is shown and entered. `json` is what no other kind can hold. */
export type Kind =
    | 'text'
    | 'lines'
    | 'secret'
    | 'number'
    | 'boolean'
    | 'choice'
    | 'texts'
    | 'map'
    | 'object'
    | 'list'
    | 'json';

/** A schema without its alternatives that only say *not set* or *keep the secret*. */
export interface Plain {
    readonly schema: Schema;
    readonly kind: Kind;
    /** The value may be null: not set. */
    readonly isNullable: boolean;
    readonly choices: readonly Choice[];
}

/** Words that are not written in small letters. */
const acronyms: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
        [
            'acme',
            'api',
            'ca',
            'cors',
            'cpu',
            'dns',
            'eab',
            'hsts',
            'http',
            'https',
            'id',
            'ip',
            'php',
            'sql',
            'ssl',
            'tls',
            'totp',
            'ttl',
            'uri',
            'url'
        ].map((word) => [word, word.toUpperCase()])
    ),
    ipv4: 'IPv4',
    ipv6: 'IPv6',
    oauth: 'OAuth'
};

/** Reads what a schema is for a page. */
export function plain(schema: Schema): Plain {
    const alternatives = (schema.anyOf ?? []).flatMap((each) =>
        each.anyOf === undefined ? [each] : each.anyOf
    );
    const useful = alternatives.filter((each) => !isNull(each) && each.const !== '' && !isKept(each));
    const isNullable =
        alternatives.some(isNull) || typesOf(schema).includes('null') || (schema.enum ?? []).includes(null);
    if (useful.length === 1 && useful[0] !== undefined) {
        const { anyOf: _alternatives, ...rest } = schema;
        return { ...plain({ ...useful[0], ...rest }), isNullable };
    }
    const choices = choicesOf(schema);
    return { schema, kind: kindOf(schema, choices, useful.length), isNullable, choices };
}

/** The label of a property: its title, else its key in words. */
export function titleOf(key: string, schema: Schema): string {
    return schema.title ?? inWords(key);
}

/** A key in words: `lastLoginAt` is *Last login at*. */
export function inWords(key: string): string {
    const words = key
        .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
        .replace(/[-_.]+/g, ' ')
        .toLowerCase()
        .replace(/[a-z0-9]+/g, (word) => acronyms[word] ?? word);
    return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whether a property belongs into a form. */
export function isWritable(schema: Schema): boolean {
    return (
        schema.readOnly !== true &&
        schema['x-ui']?.widget !== 'hidden' &&
        !/^(Read only; ignored|Acts as If-Match)/.test(schema.description ?? '')
    );
}

function kindOf(schema: Schema, choices: readonly Choice[], alternatives: number): Kind {
    if (choices.length > 0) {
        return 'choice';
    }
    const [type, second] = typesOf(schema).filter((each) => each !== 'null');
    if (alternatives > 1 || second !== undefined) {
        return 'json';
    }
    switch (type) {
        case 'boolean':
            return 'boolean';
        case 'integer':
        case 'number':
            return 'number';
        case 'string':
            return kindOfText(schema);
        case 'array':
            return kindOfArray(schema);
        case 'object':
            return kindOfObject(schema);
        default:
            return 'json';
    }
}

function kindOfText({ format, contentMediaType, maxLength = 0, 'x-ui': ui }: Schema): Kind {
    if (format === 'password') {
        return 'secret';
    }
    return contentMediaType !== undefined || ui?.widget === 'lines' || maxLength >= 16_384 ? 'lines' : 'text';
}

function kindOfArray({ items = {} }: Schema): Kind {
    const { kind } = plain(items);
    return ['text', 'lines', 'number', 'choice'].includes(kind)
        ? 'texts'
        : kind === 'object'
          ? 'list'
          : 'json';
}

function kindOfObject({ properties, additionalProperties }: Schema): Kind {
    if (properties !== undefined && Object.keys(properties).length > 0) {
        return 'object';
    }
    const values = typeof additionalProperties === 'object' ? plain(additionalProperties).kind : 'json';
    return ['text', 'lines', 'secret'].includes(values) ? 'map' : 'json';
}

function choicesOf({ enum: values, oneOf, const: only }: Schema): readonly Choice[] {
    const consts = (oneOf ?? []).filter((each) => isChoice(each.const));
    if (consts.length > 0 && consts.length === oneOf?.filter((each) => !isNull(each)).length) {
        return consts.map((each) => ({
            value: each.const as Choice['value'],
            title: each.title ?? String(each.const)
        }));
    }
    const listed = values ?? (only === undefined ? [] : [only]);
    return listed.filter(isChoice).map((value) => ({ value, title: String(value) }));
}

const isChoice = (value: unknown): value is Choice['value'] =>
    ['string', 'number', 'boolean'].includes(typeof value);
const typesOf = ({ type }: Schema): readonly string[] => (typeof type === 'string' ? [type] : (type ?? []));
const isNull = (schema: Schema): boolean => schema.type === 'null' || schema.const === null;
/** `{ "set": true }`: what stands for a secret that the answer does not show. */
const isKept = ({ properties }: Schema): boolean => properties?.['set']?.const === true;
