/** The form of a host: which fields belong to which section and type, and their labels. The schema itself is the panel's. */
import type { Schema } from '../../../schema/schema.ts';
import { t } from '../../../words/t.ts';
import { hostWords, wordedFields } from './words.ts';

/** What a host does. */
export type HostType = 'proxy' | 'redirect' | 'static' | 'php';

/** Part of the form. */
export interface Section {
    readonly id: string;
    readonly title: string;
    readonly fields: readonly string[];
    /** It is open from the start. */
    readonly isOpen: boolean;
}

/** The types, each with what it is for. */
export const hostTypes = (): readonly {
    readonly type: HostType;
    readonly title: string;
    readonly text: string;
}[] => [
    { type: 'proxy', title: t('Proxy'), text: t('Passes requests to an application') },
    { type: 'redirect', title: t('Redirect'), text: t('Sends visitors to another address') },
    { type: 'static', title: t('Files'), text: t('Serves a folder of this machine') },
    { type: 'php', title: t('PHP'), text: t('Runs a PHP application') }
];

/** The sections of a type, in the order of the form. */
export function sectionsOf(type: HostType): readonly Section[] {
    const isProxy = type === 'proxy';
    const all: readonly (readonly [string, string, readonly string[], boolean])[] = [
        ['target', t('Where it leads'), [isProxy ? 'upstreams' : type], true],
        ['tls', t('HTTPS'), ['ssl', 'sslMode', 'certificateId', 'forceHttps', 'hsts'], true],
        ['access', t('Who gets in'), ['access'], false],
        ['balancing', t('Load balancing and health'), isProxy ? ['loadBalancing', 'healthCheck'] : [], false],
        ['locations', t('Paths that lead elsewhere'), type === 'redirect' ? [] : ['locations'], false],
        ['headers', t('Headers and other origins'), ['securityHeaders', 'headers', 'cors'], false],
        [
            'limits',
            t('Limits and errors'),
            ['maintenance', 'compression', 'bodyLimitBytes', ...(isProxy ? ['timeouts'] : []), 'errorPages'],
            false
        ],
        ['notes', t('Tags and notes'), ['tags', 'notes'], false],
        ['advanced', t('Handlers of the engine'), ['advanced'], false]
    ];
    return all
        .filter(([, , fields]) => fields.length > 0)
        .map(([id, title, fields, isOpen]) => ({ id, title, fields, isOpen }));
}

/** Fields that are sent for a type. */
export function fieldsOf(type: HostType): ReadonlySet<string> {
    return new Set([
        'domain',
        'aliases',
        'type',
        'enabled',
        ...sectionsOf(type).flatMap(({ fields }) => fields)
    ]);
}

/** Labels of the fields, by their name. */
export const hostTitles = (): Readonly<Record<string, string>> =>
    Object.fromEntries(wordedFields.map((name) => [name, t(hostWords(name)?.[0] ?? name)]));

const choiceTitles = (): Readonly<Record<string, string>> => ({
    auto: t('a public authority (ACME)'),
    internal: t('the engine’s own authority'),
    certificate: t('a certificate of mine'),
    round_robin: t('in turn'),
    least_conn: t('fewest connections'),
    ip_hash: t('by the visitor’s address'),
    first: t('the first that answers'),
    random: t('at random'),
    header: t('by a header'),
    cookie: t('by a cookie'),
    weighted: t('by weight'),
    set: t('Set'),
    add: t('Add'),
    delete: t('Remove'),
    301: t('for ever, may become GET (301)'),
    302: t('for now, may become GET (302)'),
    307: t('for now (307)'),
    308: t('for ever (308)')
});

/** The panel's schema with labels, words for choices, and what depends on other fields. */
export function withWords(schema: Schema, value: Readonly<Record<string, unknown>>): Schema {
    const isPhpPool = Object.hasOwn(value['php'] ?? {}, 'upstreams');
    const hasSsl = value['ssl'] === true;
    const properties = worded(schema, '').properties ?? {};
    const { php, forceHttps, certificateId, notes } = properties;
    const variants = (php?.anyOf ?? []).filter((each) => each.type === 'object');
    return {
        ...schema,
        properties: {
            ...properties,
            ...(forceHttps === undefined ? {} : { forceHttps: { ...forceHttps, default: hasSsl } }),
            ...(certificateId === undefined
                ? {}
                : { certificateId: { ...certificateId, 'x-ui': { ref: 'certificates.list' } } }),
            ...(notes === undefined ? {} : { notes: { ...notes, 'x-ui': { widget: 'lines' as const } } }),
            ...(variants.length < 2 ? {} : { php: { ...variants[isPhpPool ? 1 : 0], title: t('PHP') } })
        }
    };
}

/** Only some of the properties. */
export function pick(schema: Schema, names: readonly string[]): Schema {
    return {
        required: schema.required ?? [],
        properties: Object.fromEntries(
            names.flatMap((name) => {
                const property = schema.properties?.[name];
                return property === undefined ? [] : [[name, property]];
            })
        )
    };
}

/** The schema of one field, and of all below it, in the words of this page: its helps are for users, those of the API for programs. */
function worded(schema: Schema, path: string): Schema {
    const [title, help] =
        hostWords(path) ?? hostWords(path.replace(/^headers\.(request|response)\./, 'headers.*.')) ?? [];
    const { description, ...rest } = withChoices(schema);
    const below = path === '' ? '' : `${path}.`;
    const items = rest.items;
    return {
        ...rest,
        ...(title === undefined ? {} : { title: t(title) }),
        ...(help === undefined ? { description } : help === '' ? {} : { description: t(help) }),
        ...(rest.properties === undefined
            ? {}
            : {
                  properties: Object.fromEntries(
                      Object.entries(rest.properties).map(([key, each]) => [key, worded(each, below + key)])
                  )
              }),
        ...(items === undefined ? {} : { items: worded(items, `${below}*`) }),
        ...(rest.anyOf === undefined ? {} : { anyOf: rest.anyOf.map((each) => wordedBelow(each, path)) })
    };
}

/** What lies below an alternative, such as an object that may be null. The alternative itself has the words of its field. */
function wordedBelow(schema: Schema, path: string): Schema {
    const { title: _title, description: _description, ...rest } = worded(schema, path);
    return rest;
}

function withChoices(schema: Schema): Schema {
    const titles = choiceTitles();
    const values = schema.enum?.filter((each) => each !== null) ?? [];
    const { enum: _values, ...rest } = schema;
    return values.length > 0 && values.every((each) => titles[String(each)] !== undefined)
        ? { ...rest, oneOf: values.map((each) => ({ const: each, title: titles[String(each)] ?? '' })) }
        : schema;
}
