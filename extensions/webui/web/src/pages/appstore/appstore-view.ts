/** What the screens of the app store read. */
import type { Schema } from '../../schema/schema.ts';

/** Where the routes of the plugin are. */
export const base = '/api/plugins/appstore';

/** An app of the catalogue. */
export interface App {
    /** `<source>/<id>`. */
    readonly key: string;
    readonly source: string;
    readonly id: string;
    readonly title: string;
    readonly tagline: string;
    readonly version: string;
    readonly categories: readonly string[];
    readonly icon: boolean;
    readonly signed: boolean;
    /** Why it cannot be installed; null where it can. */
    readonly why: string | null;
    /** Names under which it is installed. */
    readonly installed: readonly string[];
}

/** One app with what is known of it alone. */
export interface WholeApp extends App {
    readonly website: string | null;
    readonly description: { readonly markdown: string };
    readonly form: readonly FormField[];
}

/** One field of an app's own form. */
interface FormField {
    readonly name: string;
    readonly type: string;
    readonly label: string;
    readonly hint: string;
    readonly placeholder: string;
    readonly default?: string | number | boolean;
    readonly required: boolean;
    readonly min?: number;
    readonly max?: number;
    readonly options?: readonly {
        readonly label: string;
        readonly value: string | number | boolean;
    }[];
}

/** What came and what went. */
export type Difference = Readonly<
    Record<string, { readonly added: readonly string[]; readonly removed: readonly string[] }>
>;

/** What an install or an update would come to. */
export interface Plan {
    readonly images: readonly { readonly service: string; readonly image: string }[];
    readonly difference: Difference;
    readonly memoryBytes: number | null;
    readonly warnings: readonly string[];
    /** Given back with the install, where it exposes more; null where nothing is to be consented to. */
    readonly consent: string | null;
}

/** An update that waits. */
export interface Update {
    readonly name: string;
    readonly from: string;
    readonly to: string;
    readonly diff: Difference | null;
    readonly needsConsent: boolean;
    /** It is taken by itself. */
    readonly auto: boolean;
    readonly why: string | null;
}

/** The form of an app as a schema. What the panel makes by itself is not asked. */
export function schemaOf(form: readonly FormField[]): Schema {
    const asked = form.filter(({ type }) => type !== 'random');
    return {
        type: 'object',
        properties: Object.fromEntries(asked.map((field) => [field.name, fieldSchema(field)])),
        required: asked.filter(({ required }) => required).map(({ name }) => name)
    };
}

function fieldSchema(field: FormField): Schema {
    const { name, type, label, hint, placeholder, options = [], min, max } = field;
    const about: Schema = {
        title: label === '' ? name : label,
        ...(hint === '' ? {} : { description: hint }),
        ...(placeholder === '' ? {} : { examples: [placeholder] }),
        ...(field.default === undefined ? {} : { default: field.default })
    };
    if (options.length > 0) {
        return { ...about, oneOf: options.map((each) => ({ const: each.value, title: each.label })) };
    }
    switch (type) {
        case 'boolean':
            return { ...about, type: 'boolean' };
        case 'number':
            return {
                ...about,
                type: 'number',
                ...(min === undefined ? {} : { minimum: min }),
                ...(max === undefined ? {} : { maximum: max })
            };
        default:
            return { ...about, type: 'string', ...(type === 'password' ? { format: 'password' } : {}) };
    }
}
