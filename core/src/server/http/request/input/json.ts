/**
 * Reads a body as strict JSON. JSON.parse takes the last of two equal keys and any depth; two readers of one document could then
 * disagree, and a deep one exhausts the stack of the code that walks it.
 */
import { fail } from '../../../../platform/errors.ts';

const deepest = 64;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes of a body for each value in it. A megabyte of small values would hold the event loop for half a second while a schema looks at each. */
const bytesOfValue = 32;

/**
 * Parses bytes.
 *
 * @param largest - how many bytes the body might have had: it may have one value for every 32 of them
 * @throws BAD_REQUEST 40000 with what is wrong and where
 */
export function parseJson(bytes: Uint8Array, largest: number): unknown {
    let text: string;
    try {
        text = utf8.decode(bytes);
    } catch {
        throw fail.BAD_REQUEST(null, { message: 'The body is not UTF-8' });
    }
    let value: unknown;
    try {
        value = JSON.parse(text);
    } catch (error) {
        throw fail.BAD_REQUEST(null, { message: `The body is not JSON: ${position(error, text)}` });
    }
    if (typeof value === 'object' && value !== null) {
        checkStructure(text, Math.floor(largest / bytesOfValue));
    }
    return value;
}

/** Walks text that is known to be JSON: only strings, brackets and commas matter. */
function checkStructure(text: string, mostValues: number): void {
    const keys: (Set<string> | null)[] = [];
    let expectKey = false;
    let values = 0;
    const count = (): void => {
        values += 1;
        if (values > mostValues) {
            throw fail.BAD_REQUEST(null, { message: `The body has more than ${mostValues} values` });
        }
    };
    for (let at = 0; at < text.length; at += 1) {
        const char = text[at];
        if (char === '"') {
            const end = stringEnd(text, at);
            if (expectKey) {
                addKey(keys.at(-1) ?? null, textOf(text, at, end));
                expectKey = false;
            }
            at = end;
        } else if (char === '{' || char === '[') {
            count();
            keys.push(char === '{' ? new Set() : null);
            expectKey = char === '{';
            if (keys.length > deepest) {
                throw fail.BAD_REQUEST(null, {
                    message: `The body is nested more than ${deepest} levels deep`
                });
            }
        } else if (char === '}' || char === ']') {
            keys.pop();
        } else if (char === ',') {
            count();
            expectKey = keys.at(-1) instanceof Set;
        }
    }
}

function stringEnd(text: string, start: number): number {
    let at = start + 1;
    while (text[at] !== '"') {
        at += text[at] === '\\' ? 2 : 1;
    }
    return at;
}

/** The text between two quotes. */
function textOf(json: string, start: number, end: number): string {
    const inside = json.slice(start + 1, end);
    return inside.includes('\\') ? (JSON.parse(`"${inside}"`) as string) : inside;
}

function addKey(keys: Set<string> | null, key: string): void {
    if (key === '__proto__') {
        throw fail.BAD_REQUEST(null, { message: 'The body has the forbidden key "__proto__"' });
    }
    if (keys?.has(key) === true) {
        throw fail.BAD_REQUEST(null, {
            message: `The body has the key ${JSON.stringify(key.slice(0, 64))} twice`
        });
    }
    keys?.add(key);
}

function position(error: unknown, text: string): string {
    const found = /at position (\d+)/.exec((error as Error).message)?.[1];
    return found === undefined
        ? text.trim() === ''
            ? 'it is empty'
            : 'it ends too early'
        : `unexpected character at position ${found}`;
}
