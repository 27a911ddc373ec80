/** Regular expressions: JSON Schema's have no flags and are read as Unicode. */
import { Inexpressible } from './description.ts';

/** The source of a pattern as joi describes it (`/^a/i`), with its letters in both cases where it ignores case. */
export function patternOf(described: unknown, path: readonly string[]): string {
    const found = /^\/([\s\S]*)\/([a-z]*)$/.exec(String(described));
    const [, source = '', flags = ''] = found ?? [];
    const other = [...flags].find((flag) => !'iu'.includes(flag));
    if (found === null || other !== undefined) {
        throw new Inexpressible(path, `the pattern ${String(described)}`);
    }
    const plain = flags.includes('i') ? bothCases(source) : source;
    try {
        new RegExp(plain, 'u');
    } catch {
        throw new Inexpressible(path, `the pattern ${String(described)}, which is none with the flag u`);
    }
    return plain;
}

const escape = /^\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|[pP]\{[^}]*\}|k<[^>]*>|c[A-Za-z]|.)/s;
const group = /^\(\?(?:<[A-Za-z_$][\w$]*>|<?[=!]|:)/;

function bothCases(source: string): string {
    let out = '';
    let inClass = false;
    for (let at = 0; at < source.length;) {
        const rest = source.slice(at);
        const whole = escape.exec(rest)?.[0] ?? (inClass ? undefined : group.exec(rest)?.[0]);
        const range = inClass ? /^([a-z])-([a-z])|^([A-Z])-([A-Z])/.exec(rest)?.[0] : undefined;
        const char = rest[0] as string;
        if (whole !== undefined) {
            out += whole;
        } else if (range !== undefined) {
            out += range.toLowerCase() + range.toUpperCase();
        } else if (/[a-zA-Z]/.test(char)) {
            const both = char.toLowerCase() + char.toUpperCase();
            out += inClass ? both : `[${both}]`;
        } else {
            inClass = char === '[' ? true : char === ']' ? false : inClass;
            out += char;
        }
        at += (whole ?? range ?? char).length;
    }
    return out;
}
