/** The directives of PHP that a site may set. What could open its wall is not among them, see `render.ts`. */
import { errors } from '@portico/sdk';

/** The type of a directive's values. */
export type DirectiveType = 'boolean' | 'integer' | 'bytes' | 'choice' | 'text';

/** A directive of `php.ini` that a site may set, and its limits. */
export interface Directive {
    readonly name: string;
    readonly type: DirectiveType;
    /** Of `integer`, and of `bytes` in bytes. */
    readonly min?: number;
    readonly max?: number;
    /** Of `choice`. */
    readonly values?: readonly string[];
    /** Of `text`: what its value looks like. */
    readonly form?: RegExp;
    /** What a site has that sets nothing. */
    readonly default: string;
}

/** Values of directives by name, as texts. */
export type DirectiveValues = Readonly<Record<string, string>>;

const mebibyte = 2 ** 20;
const gibibyte = 2 ** 30;
const boolean = (name: string, isOn: boolean): Directive => ({
    name,
    type: 'boolean',
    default: isOn ? 'On' : 'Off'
});
const integer = (name: string, value: number, min: number, max: number): Directive => ({
    name,
    type: 'integer',
    min,
    max,
    default: String(value)
});
const bytes = (name: string, value: string, min: number, max: number): Directive => ({
    name,
    type: 'bytes',
    min,
    max,
    default: value
});
const choice = (name: string, value: string, ...values: readonly string[]): Directive => ({
    name,
    type: 'choice',
    values,
    default: value
});
const text = (name: string, value: string, form: RegExp): Directive => ({
    name,
    type: 'text',
    form,
    default: value
});

/** All directives, in the order in which people see them. */
export const directives: readonly Directive[] = [
    bytes('memory_limit', '128M', 8 * mebibyte, 64 * gibibyte),
    integer('max_execution_time', 30, 0, 86_400),
    integer('max_input_time', 60, -1, 86_400),
    integer('max_input_vars', 1_000, 1, 1_000_000),
    integer('max_input_nesting_level', 64, 1, 10_000),
    bytes('post_max_size', '8M', 1_024, 16 * gibibyte),
    bytes('upload_max_filesize', '2M', 1_024, 16 * gibibyte),
    integer('max_file_uploads', 20, 0, 10_000),
    boolean('file_uploads', true),
    integer('default_socket_timeout', 60, 1, 86_400),
    boolean('allow_url_fopen', true),
    boolean('display_errors', false),
    boolean('display_startup_errors', false),
    boolean('log_errors', true),
    integer('error_reporting', 22_527, 0, 32_767),
    boolean('html_errors', true),
    boolean('ignore_repeated_errors', false),
    boolean('short_open_tag', false),
    boolean('implicit_flush', false),
    choice('output_buffering', '4096', '0', '1024', '4096', '8192', '16384', '65536'),
    boolean('zlib.output_compression', false),
    integer('precision', 14, -1, 17),
    integer('serialize_precision', -1, -1, 17),
    choice('zend.assertions', '-1', '-1', '0', '1'),
    text('date.timezone', 'UTC', /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/),
    text('default_charset', 'UTF-8', /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/),
    text('default_mimetype', 'text/html', /^[a-z]+\/[a-z0-9.+-]{1,60}$/),
    choice('variables_order', 'GPCS', 'GPCS', 'EGPCS'),
    choice('request_order', 'GP', 'GP', 'GPC'),
    text('session.name', 'PHPSESSID', /^[A-Za-z][A-Za-z0-9_-]{0,63}$/),
    integer('session.gc_maxlifetime', 1_440, 60, 31_536_000),
    integer('session.cookie_lifetime', 0, 0, 31_536_000),
    boolean('session.cookie_httponly', true),
    boolean('session.cookie_secure', false),
    choice('session.cookie_samesite', 'Lax', 'Lax', 'Strict', 'None'),
    boolean('session.use_strict_mode', true),
    integer('session.sid_length', 32, 22, 256),
    bytes('realpath_cache_size', '4096K', 16 * 1_024, 256 * mebibyte),
    integer('realpath_cache_ttl', 120, 0, 86_400),
    integer('pcre.backtrack_limit', 1_000_000, 1_000, 100_000_000),
    integer('pcre.recursion_limit', 100_000, 1_000, 100_000_000),
    boolean('opcache.enable', true),
    integer('opcache.memory_consumption', 128, 8, 4_096),
    integer('opcache.interned_strings_buffer', 8, 4, 512),
    integer('opcache.max_accelerated_files', 10_000, 200, 1_000_000),
    boolean('opcache.validate_timestamps', true),
    integer('opcache.revalidate_freq', 2, 0, 86_400),
    boolean('opcache.save_comments', true),
    choice('opcache.jit', 'disable', 'disable', 'tracing', 'function'),
    bytes('opcache.jit_buffer_size', '0', 0, gibibyte)
];

const byName = new Map(directives.map((directive) => [directive.name, directive]));
const units: Readonly<Record<string, number>> = { '': 1, K: 1_024, M: mebibyte, G: gibibyte };

/** The values of all directives for a site that sets some. */
export function effective(values: DirectiveValues): DirectiveValues {
    return Object.fromEntries(directives.map(({ name, default: usual }) => [name, values[name] ?? usual]));
}

/**
 * The values of a site after a change: a value replaces the one before, null takes it back to its default.
 *
 * @throws VALIDATION_FAILED 40001 for a directive that no site may set, and for a value that is not of its type
 */
export function changed(
    before: DirectiveValues,
    change: Readonly<Record<string, string | number | boolean | null>>
): DirectiveValues {
    const faults: { path: string; message: string }[] = [];
    const values: Record<string, string> = { ...before };
    for (const [name, given] of Object.entries(change)) {
        const directive = byName.get(name);
        const value = directive === undefined || given === null ? null : read(directive, given);
        if (directive === undefined) {
            faults.push({ path: `values.${name}`, message: `${name} is no directive that a site may set` });
        } else if (given === null) {
            delete values[name];
        } else if (value === null) {
            faults.push({ path: `values.${name}`, message: `${name} is ${saidOf(directive)}` });
        } else {
            values[name] = value;
        }
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
    return values;
}

/** The value as a text of the directive's type; null when it is none. */
function read(directive: Directive, given: string | number | boolean): string | null {
    const value = String(given);
    switch (directive.type) {
        case 'boolean':
            return /^(?:on|true|1|yes)$/i.test(value)
                ? 'On'
                : /^(?:off|false|0|no)$/i.test(value)
                  ? 'Off'
                  : null;
        case 'integer':
            return /^-?\d{1,10}$/.test(value) && fits(directive, Number(value))
                ? String(Number(value))
                : null;
        case 'bytes': {
            const [, number = '', unit = ''] = /^(\d{1,12})([KMG]?)$/i.exec(value) ?? [];
            const factor = units[unit.toUpperCase()] ?? 1;
            return number !== '' && fits(directive, Number(number) * factor)
                ? `${Number(number)}${unit.toUpperCase()}`
                : null;
        }
        case 'choice':
            return directive.values?.find((each) => each.toLowerCase() === value.toLowerCase()) ?? null;
        case 'text':
            return directive.form?.test(value) === true ? value : null;
    }
}

function fits({ min = -Infinity, max = Infinity }: Directive, value: number): boolean {
    return value >= min && value <= max;
}

function saidOf({ type, min, max, values = [] }: Directive): string {
    switch (type) {
        case 'boolean':
            return 'On or Off';
        case 'integer':
            return `a whole number from ${min} to ${max}`;
        case 'bytes':
            return `a size such as 64M, from ${min} to ${max} bytes`;
        case 'choice':
            return `one of ${values.join(', ')}`;
        case 'text':
            return 'a short text of letters, digits and few signs';
    }
}
