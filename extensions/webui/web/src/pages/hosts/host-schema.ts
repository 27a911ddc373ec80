/** The form of a host: which fields belong to which section and type, and their labels. The schema itself is the panel's. */
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

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
export const hostTitles = (): Readonly<Record<string, string>> => ({
    domain: t('Name'),
    aliases: t('Further names'),
    type: t('Type'),
    upstreams: t('Upstreams'),
    redirect: t('Redirect'),
    static: t('Folder'),
    php: t('PHP'),
    ssl: t('Serve HTTPS'),
    sslMode: t('Certificate from'),
    certificateId: t('Certificate'),
    forceHttps: t('Send visitors from HTTP to HTTPS'),
    hsts: t('Tell browsers to use HTTPS alone (HSTS)'),
    access: t('Rules'),
    loadBalancing: t('Load balancing'),
    healthCheck: t('Health check'),
    locations: t('Paths'),
    securityHeaders: t('Send the usual security headers'),
    headers: t('Headers'),
    cors: t('Other origins (CORS)'),
    maintenance: t('Maintenance: answer 503 to every visitor'),
    compression: t('Compress answers'),
    bodyLimitBytes: t('Largest request body, in bytes'),
    timeouts: t('Time limits'),
    errorPages: t('Error pages'),
    tags: t('Tags'),
    notes: t('Notes'),
    advanced: t('Handlers'),
    enabled: t('Enabled')
});

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
    weighted: t('by weight')
});

/** The panel's schema with labels, words for choices, and what depends on other fields. */
export function withWords(schema: Schema, value: Readonly<Record<string, unknown>>): Schema {
    const isPhpPool = Object.hasOwn(value['php'] ?? {}, 'upstreams');
    const hasSsl = value['ssl'] === true;
    const titles = hostTitles();
    const properties = Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([key, each]) => [
            key,
            { ...withChoices(each), ...(titles[key] === undefined ? {} : { title: titles[key] }) }
        ])
    );
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

function withChoices(schema: Schema): Schema {
    const titles = choiceTitles();
    const values = schema.enum?.filter((each) => each !== null) ?? [];
    const { enum: _values, ...rest } = schema;
    if (values.length > 0 && values.every((each) => titles[String(each)] !== undefined)) {
        return { ...rest, oneOf: values.map((each) => ({ const: each, title: titles[String(each)] ?? '' })) };
    }
    return schema.properties === undefined
        ? schema
        : {
              ...schema,
              properties: Object.fromEntries(
                  Object.entries(schema.properties).map(([key, each]) => [key, withChoices(each)])
              )
          };
}
