/** Every setting of the core. The API shows this table, writes are checked against it, and the documentation is generated from it. */
import { X509Certificate } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';

import { type AnySchema, joi } from '@portico/sdk';

import type { Config } from '../../platform/config.ts';

/** How a client may edit a setting. */
export type SettingType = 'string' | 'integer' | 'boolean' | 'list' | 'object';

/** One setting. `T` is the type of its value; when that may be null, null is the default. */
export interface Definition<T> {
    readonly type: SettingType;
    readonly default: T;
    readonly unit: string | null;
    readonly description: string;
    /** Sealed at rest and never read back. */
    readonly secret: boolean;
    /** A change takes effect after the next start of the panel. */
    readonly restart: boolean;
    /** A change needs a fresh session: it says who is believed, who may call, or what is kept as evidence. */
    readonly stepUp: boolean;
    /** Does not allow null, since null in a write means the default. */
    readonly schema: AnySchema;
    /** A fault that the schema cannot find; null when there is none. */
    readonly check?: (value: T) => string | null;
    /** The environment variable that overrides the stored value, and how to read it; null when it is not set. */
    readonly environment?: { readonly variable: string; readonly read: (config: Config) => T | null };
}

function setting<T>(
    definition: Pick<Definition<T>, 'type' | 'default' | 'description' | 'schema'> & Partial<Definition<T>>
): Definition<T> {
    return { unit: null, secret: false, restart: false, stepUp: false, ...definition };
}

/** Credentials that bind an ACME account to an account at the CA (RFC 8555, 7.3.4). */
export interface ExternalAccount {
    readonly keyId: string;
    readonly macKey: string;
}

const port = joi.number().integer().min(1).max(65535);
const addresses = { version: ['ipv4', 'ipv6'] };
const ranges = joi
    .array()
    .items(joi.string().ip({ ...addresses, cidr: 'optional' }))
    .unique()
    .max(100);
const none: readonly string[] = [];

/** The settings by their keys. */
export const definitions = {
    'server.ipv4': setting<string | null>({
        type: 'string',
        default: null,
        description:
            'The IPv4 address under which this machine is reached from outside; names of hosts are checked against it',
        schema: joi.string().max(15),
        check: (value) => (value === null || isIPv4(value) ? null : 'must be an IPv4 address')
    }),
    'server.ipv6': setting<string | null>({
        type: 'string',
        default: null,
        description: 'The IPv6 address under which this machine is reached from outside',
        schema: joi.string().max(45),
        check: (value) =>
            value === null || (isIPv6(value) && !value.includes('%')) ? null : 'must be an IPv6 address'
    }),
    'engine.autoReload': setting<boolean>({
        type: 'boolean',
        default: true,
        description: 'Apply a change as soon as it is made; otherwise it waits for a reload',
        schema: joi.boolean()
    }),
    'engine.driftRepair': setting<boolean>({
        type: 'boolean',
        default: true,
        description:
            'Give the proxy engine its configuration again when others have changed it; otherwise status and notifications only say it',
        schema: joi.boolean()
    }),
    'engine.accessLog': setting<boolean>({
        type: 'boolean',
        default: false,
        description:
            'Record each request to a host, without its query string, for plugins that may read it; the newest 128 MiB are kept, and what there is goes when this is switched off',
        schema: joi.boolean()
    }),
    'engine.httpPort': setting<number>({
        type: 'integer',
        default: 80,
        description: 'Port on which the proxy engine serves HTTP',
        schema: port,
        environment: { variable: 'PORTICO_ENGINE_HTTP_PORT', read: (config) => config.engineHttpPort }
    }),
    'engine.httpsPort': setting<number>({
        type: 'integer',
        default: 443,
        description: 'Port on which the proxy engine serves HTTPS',
        schema: port,
        environment: { variable: 'PORTICO_ENGINE_HTTPS_PORT', read: (config) => config.engineHttpsPort }
    }),
    'engine.acmeEmail': setting<string | null>({
        type: 'string',
        default: null,
        description: 'Where the CA writes to about certificates',
        schema: joi
            .string()
            .email({ tlds: { allow: false } })
            .max(254)
    }),
    'engine.acmeDirectory': setting<string | null>({
        type: 'string',
        default: null,
        description: 'Directory URL of the ACME server; without it the default of the proxy engine',
        schema: joi
            .string()
            .uri({ scheme: ['https', 'http'] })
            .max(2048)
    }),
    'engine.acmeEab': setting<ExternalAccount | null>({
        type: 'object',
        default: null,
        description: 'Key id and MAC key for CAs that bind ACME accounts to their own',
        secret: true,
        schema: joi.object({
            keyId: joi
                .string()
                .pattern(/^[\x21-\x7a|~]+$/)
                .max(512)
                .required(),
            macKey: joi
                .string()
                .pattern(/^[A-Za-z0-9_-]+={0,2}$/)
                .max(512)
                .required()
        })
    }),
    'certificates.caRoots': setting<string | null>({
        type: 'string',
        default: null,
        stepUp: true,
        description:
            "Certificates (PEM) of authorities that are trusted for ACME servers, in addition to those of the system: for a CA of one's own",
        schema: joi.string().max(65_536),
        check: (value) => (value === null || isCertificates(value) ? null : 'must be certificates as PEM')
    }),
    'panel.url': setting<string | null>({
        type: 'string',
        default: null,
        description: 'The address of this panel as users type it; links in messages start with it',
        schema: joi
            .string()
            .uri({ scheme: ['https', 'http'] })
            .max(2048)
    }),
    'panel.trustedProxies': setting<readonly string[]>({
        type: 'list',
        default: none,
        stepUp: true,
        description: 'Addresses and ranges of proxies whose X-Forwarded-For is trusted',
        schema: ranges,
        check: (value) =>
            value.some((range) => range.endsWith('/0')) ? 'must not trust every address' : null
    }),
    'panel.corsOrigins': setting<readonly string[]>({
        type: 'list',
        default: none,
        stepUp: true,
        description: 'Origins whose pages may call the API from a browser, as `https://panel.example`',
        schema: joi
            .array()
            .items(
                joi
                    .string()
                    .uri({ scheme: ['https', 'http'] })
                    .max(512)
            )
            .unique()
            .max(100),
        check: (value) =>
            value.every((origin) => URL.parse(origin)?.origin === origin)
                ? null
                : 'must be origins: scheme, name in lower case and port, nothing else'
    }),
    'panel.accessTokenMinutes': setting<number>({
        type: 'integer',
        default: 30,
        stepUp: true,
        unit: 'minutes',
        description: 'How long an access token is valid',
        schema: joi.number().integer().min(1).max(1440)
    }),
    'panel.refreshTokenDays': setting<number>({
        type: 'integer',
        default: 14,
        stepUp: true,
        unit: 'days',
        description: 'How long a session lasts without being used',
        schema: joi.number().integer().min(1).max(365)
    }),
    'panel.requireTotp': setting<boolean>({
        type: 'boolean',
        default: false,
        stepUp: true,
        description: 'Every account must have a second factor',
        schema: joi.boolean()
    }),
    'panel.oauthRegistration': setting<boolean>({
        type: 'boolean',
        default: false,
        stepUp: true,
        description:
            'OAuth clients may register themselves (RFC 7591). They may do nothing until a user authorizes them',
        schema: joi.boolean()
    }),
    'panel.stepUpMinutes': setting<number>({
        type: 'integer',
        default: 15,
        stepUp: true,
        unit: 'minutes',
        description: 'How long dangerous actions are allowed after a login or a step-up',
        schema: joi.number().integer().min(1).max(1440)
    }),
    'panel.outboundAllow': setting<readonly string[]>({
        type: 'list',
        default: none,
        stepUp: true,
        description: 'Private addresses and ranges that the panel may send requests to',
        schema: ranges
    }),
    'audit.retentionDays': setting<number>({
        type: 'integer',
        default: 365,
        stepUp: true,
        unit: 'days',
        description: 'How long audit entries are kept',
        schema: joi.number().integer().min(1).max(3650)
    }),
    'dns.nameservers': setting<readonly string[]>({
        type: 'list',
        default: none,
        description: 'Name servers that are asked when names are checked; without any those of the system',
        schema: joi
            .array()
            .items(joi.string().ip({ ...addresses, cidr: 'forbidden' }))
            .unique()
            .max(10)
    })
} as const;

function isCertificates(text: string): boolean {
    try {
        const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
        return (
            blocks.length > 0 &&
            blocks.every((block) => new X509Certificate(block).raw.length > 0) &&
            blocks.reduce((rest, block) => rest.replace(block, ''), text).trim() === ''
        );
    } catch {
        return false;
    }
}

/** The key of a setting. */
export type SettingKey = keyof typeof definitions;
/** The values of all settings. */
export type SettingValues = { readonly [K in SettingKey]: (typeof definitions)[K]['default'] };

/** All keys, in the order of the table. */
export const settingKeys = Object.keys(definitions) as readonly SettingKey[];

/** The settings of the engine, with the name that the engine has for each. */
export const engineKeys = {
    'engine.httpPort': 'httpPort',
    'engine.httpsPort': 'httpsPort',
    'engine.acmeEmail': 'acmeEmail',
    'engine.acmeDirectory': 'acmeDirectory',
    'engine.acmeEab': 'acmeEab',
    'engine.accessLog': 'accessLog'
} as const satisfies Partial<Record<SettingKey, string>>;

/** The key of a setting of the engine. */
export type EngineKey = keyof typeof engineKeys;

/** Whether a text is the key of a setting. */
export function isSettingKey(key: string): key is SettingKey {
    return Object.hasOwn(definitions, key);
}

/** Whether a setting belongs to the engine. */
export function isEngineKey(key: SettingKey): key is EngineKey {
    return Object.hasOwn(engineKeys, key);
}

/** The definition of any setting, without the type of its value. */
export function definitionOf(key: SettingKey): Definition<unknown> {
    return definitions[key] as unknown as Definition<unknown>; // `check` takes the one type that `schema` lets through
}
