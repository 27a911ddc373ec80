/** DNS providers as the screens read them, and the form of a type from its data. */
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';

/** A DNS provider, as the API gives it. */
export interface Provider {
    readonly id: number;
    readonly name: string;
    readonly type: string;
    /** Which fields are set. Values are never read back. */
    readonly credentials: Readonly<Record<string, boolean>>;
    readonly isDefault: boolean;
    readonly usedBy: readonly number[];
    readonly version: number;
}

/** A type of provider. */
export interface ProviderType {
    readonly type: string;
    readonly label: string;
    readonly builtIn: boolean;
    readonly fields: readonly ProviderField[];
}

/** A field of a type. */
export interface ProviderField {
    readonly name: string;
    readonly label: string;
    readonly secret: boolean;
    readonly required: boolean;
    readonly help: string;
    readonly options?: readonly string[];
}

/** What a test of a provider found. */
export interface TestResult {
    readonly ok: boolean;
    readonly record: string;
    readonly steps: readonly {
        readonly step: string;
        readonly ok: boolean;
        readonly message: string;
        readonly milliseconds: number;
    }[];
}

/** Where the routes are. */
export const base = '/api/dns-providers';

/** The schema of a provider's form. @param kept - fields that are set already; null for a new provider */
export function schemaOf({ fields }: ProviderType, kept: Provider['credentials'] | null): Schema {
    const required = fields.filter((each) => each.required && kept?.[each.name] !== true);
    return {
        properties: {
            name: { type: 'string', title: t('Name in this panel') },
            credentials: {
                type: 'object',
                title: t('Access to the zone'),
                properties: Object.fromEntries(
                    fields.map((field) => [field.name, fieldSchema(field, kept?.[field.name] === true)])
                ),
                required: required.map(({ name }) => name)
            },
            isDefault: {
                type: 'boolean',
                title: t('Taken where a certificate names none'),
                default: false
            }
        },
        required: ['name', 'credentials']
    };
}

function fieldSchema({ label, help, secret, options }: ProviderField, isSet: boolean): Schema {
    return {
        type: 'string',
        title: t(label),
        ...(help === '' ? {} : { description: t(help) }),
        ...(options === undefined ? {} : { enum: options }),
        ...(secret ? { format: 'password' } : {}),
        ...(isSet && !secret ? { examples: [t('is set; leave it empty to keep it')] } : {})
    };
}

/** The value that a form begins with. A secret that is set shows that it is. */
export function initialOf(
    { fields }: ProviderType,
    { name, isDefault, credentials }: Provider
): Record<string, unknown> {
    const secrets = fields.filter((each) => each.secret && credentials[each.name] === true);
    return {
        name,
        isDefault,
        credentials: Object.fromEntries(secrets.map((each) => [each.name, { set: true }]))
    };
}

/** Credentials as the routes take them: those that were typed. */
export function typed(credentials: unknown): Record<string, string> {
    return Object.fromEntries(
        Object.entries((credentials ?? {}) as Record<string, unknown>).filter(
            (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== ''
        )
    );
}
