/** Strings: joi's rules as lengths, formats and patterns. */
import {
    allOf,
    demandsOf,
    type Description,
    Inexpressible,
    type JsonSchema,
    numberOf,
    type Rule,
    type Use
} from './description.ts';
import { patternOf } from './pattern.ts';

type Reader = (rule: Rule, path: readonly string[], use: Use) => JsonSchema;

const format =
    (name: string): Reader =>
    () => ({ format: name });
const pattern =
    (source: string): Reader =>
    () => ({ pattern: source });
/** Rules that change text where it is converted, and are demands where it is taken as it is. */
const unlessText =
    (reader: Reader): Reader =>
    (rule, path, use) =>
        use.side === 'text' ? {} : reader(rule, path, use);

const rules: Readonly<Record<string, Reader>> = {
    min(rule, path) {
        if (rule.args?.['encoding'] !== undefined) {
            throw new Inexpressible(path, 'a least length in bytes');
        }
        return { minLength: numberOf(rule, 'limit', path) };
    },
    // As many characters as bytes are the most that can pass.
    max: (rule, path) => ({ maxLength: numberOf(rule, 'limit', path) }),
    length(rule, path) {
        if (rule.args?.['encoding'] !== undefined) {
            throw new Inexpressible(path, 'a length in bytes');
        }
        const limit = numberOf(rule, 'limit', path);
        return { minLength: limit, maxLength: limit };
    },
    pattern(rule, path) {
        const found = patternOf(rule.args?.['regex'], path);
        const { invert = false } = (rule.args?.['options'] ?? {}) as { invert?: boolean };
        return invert ? { not: { pattern: found } } : { pattern: found };
    },
    alphanum: pattern('^[a-zA-Z0-9]+$'),
    token: pattern('^[a-zA-Z0-9_]+$'),
    hex(rule) {
        const { byteAligned = false, prefix = false } = (rule.args?.['options'] ?? {}) as {
            byteAligned?: boolean;
            prefix?: boolean | 'optional';
        };
        const lead = prefix === false ? '' : prefix === true ? '0[xX]' : '(?:0[xX])?';
        return { pattern: byteAligned ? `^${lead}(?:[0-9a-fA-F]{2})+$` : `^${lead}[0-9a-fA-F]+$` };
    },
    base64(rule) {
        const { urlSafe = false } = (rule.args?.['options'] ?? {}) as { urlSafe?: boolean };
        return { contentEncoding: urlSafe ? 'base64url' : 'base64' };
    },
    email: format('email'),
    uri(rule) {
        const { allowRelative = false, relativeOnly = false } = (rule.args?.['options'] ?? {}) as {
            allowRelative?: boolean;
            relativeOnly?: boolean;
        };
        return { format: allowRelative || relativeOnly ? 'uri-reference' : 'uri' };
    },
    hostname: format('hostname'),
    domain: format('hostname'),
    guid: format('uuid'),
    isoDuration: format('duration'),
    // joi takes a date alone, too; what we write and promise to read back is the whole time.
    isoDate: format('date-time'),
    dataUri: pattern('^data:'),
    ip(rule, path) {
        const { version = ['ipv4', 'ipv6', 'ipvfuture'], cidr = 'optional' } = (rule.args?.['options'] ??
            {}) as { version?: string | string[]; cidr?: string };
        const versions = [version].flat();
        const formats = ['ipv4', 'ipv6'].filter((each) => versions.includes(each));
        if (formats.length === 0) {
            throw new Inexpressible(path, 'an address that is neither IPv4 nor IPv6');
        }
        if (cidr !== 'forbidden') {
            return {
                pattern:
                    cidr === 'required' ? '^[0-9a-fA-F.:]+/[0-9]{1,3}$' : '^[0-9a-fA-F.:]+(?:/[0-9]{1,3})?$'
            };
        }
        return formats.length === 1
            ? { format: formats[0] }
            : { anyOf: formats.map((each) => ({ format: each })) };
    },
    case: unlessText((rule) => ({
        pattern: rule.args?.['direction'] === 'lower' ? '^[^A-Z]*$' : '^[^a-z]*$'
    })),
    trim: unlessText(pattern('^(?!\\s)[\\s\\S]*(?<!\\s)$')),
    custom: () => ({})
};

/** The JSON Schema of a joi string. */
export function stringSchema(description: Description, use: Use, path: readonly string[]): JsonSchema {
    const demands = demandsOf(description, rules, path, use);
    const lengths = demands.filter((demand) => 'minLength' in demand || 'maxLength' in demand);
    // joi refuses the empty string unless it is among the allowed values.
    const least = Math.max(1, ...lengths.map((demand) => (demand['minLength'] as number | undefined) ?? 0));
    const most = Math.min(
        ...lengths.map((demand) => (demand['maxLength'] as number | undefined) ?? Infinity)
    );
    const base = { type: 'string', minLength: least, ...(most === Infinity ? {} : { maxLength: most }) };
    return allOf(
        base,
        demands.filter((demand) => !lengths.includes(demand) && Object.keys(demand).length > 0)
    );
}
