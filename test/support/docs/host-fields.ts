/** The fields of a host as rows of a table, made of the schema that checks them. */
import { hostCreate } from '../../../core/src/features/hosts/schema/bodies.ts';

/** The part of joi's description that the table shows. */
interface Described {
    readonly type: string;
    readonly flags?: {
        readonly description?: string;
        readonly default?: unknown;
        readonly presence?: string;
        readonly only?: boolean;
    };
    readonly allow?: readonly unknown[];
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
}

/** A row: field, type, default, meaning. */
export type FieldRow = readonly [field: string, type: string, standard: string, meaning: string];

/** Descriptions of fields whose schema has none. */
const plain: Readonly<Record<string, string>> = {
    tags: 'Words to sort hosts by; `GET /api/hosts?tag=…` finds them',
    notes: 'For people'
};

/** Lists every field at every depth; `[]` stands for the members of a list. */
export function hostFields(): readonly FieldRow[] {
    return fieldsOf(hostCreate.describe() as Described, '');
}

function fieldsOf({ keys = {} }: Described, above: string): FieldRow[] {
    return Object.entries(keys).flatMap(([name, field]) => {
        const path = `${above}${name}`;
        const item = field.items?.[0];
        return [
            [path, typeOf(field), standardOf(field), field.flags?.description ?? plain[path] ?? ''] as const,
            ...fieldsOf(field, `${path}.`),
            ...(item === undefined ? [] : fieldsOf(item, `${path}[].`))
        ];
    });
}

function typeOf({ type, flags, allow = [], items }: Described): string {
    const values = allow.filter((value) => value !== null && value !== '');
    return flags?.only === true
        ? values.map((value) => `\`${String(value)}\``).join(', ')
        : type === 'array'
          ? `list of ${items?.[0]?.type === 'object' ? 'objects' : 'texts'}`
          : ({ string: 'text', number: 'integer' }[type] ?? type);
}

function standardOf({ flags, keys }: Described): string {
    const standard = flags?.default;
    if (flags?.presence === 'required') {
        return 'required';
    }
    return standard === undefined || standard === null || keys !== undefined
        ? '—'
        : `\`${JSON.stringify(standard)}\``;
}
