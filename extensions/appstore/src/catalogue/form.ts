/** The form of an app: which values it takes, and what they may be. */
import { randomBytes, randomInt } from 'node:crypto';
import { isIP } from 'node:net';

import { joi, matchPattern, type Value } from '@portico/sdk';

const fieldTypes = {
    text: 'Text',
    password: 'Password',
    email: 'E-mail address',
    number: 'Number',
    fqdn: 'Domain name',
    ip: 'IP address',
    fqdnip: 'Domain name or IP address',
    random: 'Made by the panel',
    boolean: 'Yes or no'
} as const;

const scalar = joi.alternatives(joi.string().allow('').max(4_096), joi.number(), joi.boolean());

/** One field of a form, as documents hold it and answers show it. */
export const formField = joi.object({
    name: joi
        .string()
        .pattern(/^[A-Z][A-Z0-9_]{0,63}$/, 'capital letters, digits and _')
        .invalid('APP_ID', 'APP_NAME', 'APP_PORT', 'APP_DOMAIN', 'APP_URL')
        .required()
        .label('Name'),
    type: joi.choice(fieldTypes).required().label('Type'),
    label: joi.string().allow('').max(200).default('').label('Label'),
    hint: joi.string().allow('').max(1_000).default('').label('Hint'),
    placeholder: joi.string().allow('').max(200).default('').label('Example'),
    default: scalar.label('Default'),
    required: joi.boolean().default(false).label('Required'),
    min: joi.number().label('Least').description('Characters; of a number its value'),
    max: joi.number().label('Most').description('Characters; of a number its value'),
    regex: joi.string().max(500).label('Pattern'),
    patternError: joi.string().allow('').max(500).label('Message of the pattern'),
    options: joi
        .array()
        .items(
            joi.object({
                label: joi.string().allow('').max(200).required().label('Label'),
                value: scalar.required().label('Value')
            })
        )
        .max(500)
        .label('Choices'),
    encoding: joi.choice({ hex: 'Hex digits', base64: 'Base64' }).label('Encoding')
});
/** A field of a form. */
export type FormField = Value<typeof formField>;

/** What a user may send as a value. */
export type GivenValue = string | number | boolean | null;
/** Values by name, as the compose text gets them. */
export type FormValues = Readonly<Record<string, string>>;

/** A fault of one value. */
export interface ValueFault {
    readonly path: string;
    readonly message: string;
}

const mostCharacters = 4_096;
/** Control characters, and what some readers take for the end of a line. */
const notOneLine = /[\p{Cc}\u2028\u2029]/u;
const hostPattern =
    /^(?=.{1,253}$)(?!.*\.$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const emailPattern = /^[^\s@"'<>]{1,64}@[^\s@"'<>]{1,255}$/;

/** Names of the fields whose values are secrets. */
export const secretNames = (form: readonly FormField[]): ReadonlySet<string> =>
    new Set(form.filter(({ type }) => type === 'password' || type === 'random').map(({ name }) => name));

/**
 * Checks what was given for a form, on top of what is kept. Random values are made once and never taken from outside.
 *
 * @param given - null takes a value back to its default
 * @param kept - the values of before; a field that `given` does not name keeps its value
 */
export function fillForm(
    form: readonly FormField[],
    given: Readonly<Record<string, GivenValue>>,
    kept: FormValues
): { readonly values: FormValues; readonly faults: readonly ValueFault[] } {
    const faults: ValueFault[] = [];
    const values: Record<string, string> = {};
    const report = (name: string, message: string): void => {
        faults.push({ path: `values.${name}`, message });
    };
    const names = new Set(form.map(({ name }) => name));
    for (const name of Object.keys(given)) {
        if (!names.has(name)) {
            report(name, 'The app has no such field');
        }
    }
    for (const field of form) {
        const { name } = field;
        const asked = Object.hasOwn(given, name) ? given[name] : undefined;
        if (field.type === 'random') {
            if (asked !== undefined) {
                report(name, 'The panel makes this value');
            }
            values[name] = kept[name] ?? randomValue(field);
            continue;
        }
        const text = textOf(asked ?? (asked === null ? undefined : kept[name]) ?? field.default, field);
        const fault = faultOf(text, asked, field);
        if (fault !== null) {
            report(name, fault);
        }
        values[name] = text;
    }
    return { values, faults };
}

function textOf(value: GivenValue | undefined, { type }: FormField): string {
    if (value === undefined || value === null) {
        return type === 'boolean' ? 'false' : '';
    }
    return String(value);
}

function faultOf(text: string, given: GivenValue | undefined, field: FormField): string | null {
    const { type, required, options } = field;
    if (typeof given === 'boolean' && type !== 'boolean') {
        return 'This is no text';
    }
    if (text === '') {
        return required ? 'A value is required' : null;
    }
    if (text.length > mostCharacters || notOneLine.test(text)) {
        return `This is one line of at most ${mostCharacters} characters`;
    }
    if (options !== undefined && options.length > 0 && !options.some(({ value }) => String(value) === text)) {
        return 'This is one of the choices';
    }
    return kindFault(text, field) ?? rangeFault(text, field) ?? patternFault(text, field);
}

function kindFault(text: string, { type }: FormField): string | null {
    switch (type) {
        case 'number':
            return /^-?\d{1,15}(\.\d{1,10})?$/.test(text) ? null : 'This is a number';
        case 'boolean':
            return text === 'true' || text === 'false' ? null : 'This is true or false';
        case 'email':
            return emailPattern.test(text) ? null : 'This is an e-mail address';
        case 'fqdn':
            return hostPattern.test(text) && isIP(text) === 0 ? null : 'This is a domain name';
        case 'ip':
            return isIP(text) === 0 ? 'This is an IP address' : null;
        case 'fqdnip':
            return isIP(text) === 0 && !hostPattern.test(text)
                ? 'This is a domain name or an IP address'
                : null;
        default:
            return null;
    }
}

function rangeFault(text: string, { type, min, max }: FormField): string | null {
    const size = type === 'number' ? Number(text) : text.length;
    const what = type === 'number' ? '' : ' characters';
    if (min !== undefined && size < min) {
        return `This is at least ${min}${what}`;
    }
    return max !== undefined && size > max ? `This is at most ${max}${what}` : null;
}

/** The pattern is the catalogue's, so it gets little time: one that never ends would keep the panel. */
function patternFault(text: string, { regex, patternError }: FormField): string | null {
    if (regex === undefined) {
        return null;
    }
    const fits = matchPattern(regex, text);
    if (fits === null) {
        return 'The pattern of this field cannot be checked';
    }
    return fits ? null : patternError || `This must match ${regex}`;
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** A random value of exactly `min` characters, 32 without it. */
function randomValue({ min = 32, encoding }: FormField): string {
    const length = Math.min(Math.max(Math.trunc(min), 1), 1_024);
    if (encoding !== undefined) {
        return randomBytes(length).toString(encoding).slice(0, length);
    }
    return Array.from({ length }, () => letters[randomInt(letters.length)]).join('');
}
