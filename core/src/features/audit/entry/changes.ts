/** What a change did, in a form that is safe to keep for years: only the changed fields, with secrets masked and size and depth bounded. */
import { canonicalize } from '@portico/sdk';

import { isSecretHeader } from '../../../platform/header-secrets.ts';
import { clean } from './text.ts';

const mask = '[masked]';
/** Names of fields whose value is a secret. `keyId` and the like only name a key. */
const secretKey =
    /pass(?:word|phrase|wd)?$|secret|tokens?$|keys?$|hash(?:es)?$|credential|totp|otp$|recovery|mac$|eab$|authorization|cookie|salt$|pin$|bearer|signature/i;
const userInfo = /(\b[a-z][a-z0-9+.-]*:\/\/)[^/@\s"]*:[^/@\s"]*@/gi;

const deepest = 8;
const mostNodes = 4_000;
const mostBytes = 16 * 1024;
const mostBytesOfField = 1024;
const longestText = 2_048;

type Fields = Readonly<Record<string, unknown>>;

/** The canonical JSON of `{ before, after }`, with `truncated` where something was left out; null when both are absent. */
export function changesOf(before: unknown, after: unknown): string | null {
    if ((before === undefined || before === null) && (after === undefined || after === null)) {
        return null;
    }
    const budget = { left: mostNodes, truncated: false };
    const [plainBefore, plainAfter] = reduce(before ?? null, after ?? null, budget);
    const whole = canonicalize({
        after: plainAfter,
        before: plainBefore,
        ...(budget.truncated ? { truncated: true } : {})
    });
    if (Buffer.byteLength(whole) <= mostBytes) {
        return whole;
    }
    const small = canonicalize({ after: shrink(plainAfter), before: shrink(plainBefore), truncated: true });
    return Buffer.byteLength(small) <= mostBytes
        ? small
        : canonicalize({ after: namesOf(plainAfter), before: namesOf(plainBefore), truncated: true });
}

/** Keeps only the fields in which two objects differ. They are compared before secrets are masked, so that a new password counts as a change. */
function reduce(before: unknown, after: unknown, budget: Budget): [unknown, unknown] {
    if (!isFields(before) || !isFields(after)) {
        return [plain(before, 0, budget), plain(after, 0, budget)];
    }
    const old: Record<string, unknown> = {};
    const now: Record<string, unknown> = {};
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
        if (budget.left <= 0) {
            budget.truncated = true;
            break;
        }
        if (!same(before[key], after[key], 0)) {
            setPlain(old, key, before[key], 0, budget);
            setPlain(now, key, after[key], 0, budget);
        }
    }
    return [old, now];
}

interface Budget {
    left: number;
    truncated: boolean;
}

function same(a: unknown, b: unknown, depth: number): boolean {
    if (Object.is(a, b)) {
        return true;
    }
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || depth > deepest) {
        return false;
    }
    if (a instanceof Date || b instanceof Date) {
        return a instanceof Date && b instanceof Date && a.getTime() === b.getTime();
    }
    const keys = Object.keys(a);
    return (
        Array.isArray(a) === Array.isArray(b) &&
        keys.length === Object.keys(b).length &&
        keys.every((key) => Object.hasOwn(b, key) && same((a as Fields)[key], (b as Fields)[key], depth + 1))
    );
}

/** Turns any value into plain data, with secrets masked and its size counted against the budget. */
function plain(value: unknown, depth: number, budget: Budget): unknown {
    budget.left -= 1;
    if (budget.left < 0) {
        budget.truncated = true;
        return null;
    }
    switch (typeof value) {
        case 'string':
            budget.truncated ||= value.length > longestText;
            return clean(value, longestText).replace(userInfo, '$1[masked]@');
        case 'number':
            return Number.isFinite(value) ? value : String(value);
        case 'boolean':
            return value;
        case 'bigint':
            return String(value);
        case 'object':
            return value === null ? null : plainObject(value, depth, budget);
        default:
            return undefined;
    }
}

function plainObject(value: object, depth: number, budget: Budget): unknown {
    if (value instanceof Date) {
        return Number.isNaN(value.getTime()) ? null : value.toISOString();
    }
    if (ArrayBuffer.isView(value)) {
        return `[${value.byteLength} bytes]`;
    }
    if (depth >= deepest) {
        budget.truncated = true;
        return '[too deep]';
    }
    if (Array.isArray(value) || value instanceof Set) {
        const items: unknown[] = [];
        for (const item of value) {
            if (budget.left <= 0) {
                budget.truncated = true;
                break;
            }
            items.push(plain(item, depth + 1, budget) ?? null);
        }
        return items;
    }
    const result: Record<string, unknown> = {};
    const fields =
        value instanceof Map
            ? (Object.fromEntries([...value].filter(([key]) => typeof key === 'string')) as Fields)
            : (value as Fields);
    const headerName = fields['name'];
    // As in `{ name: 'Authorization', value: '…' }`.
    const masksValue = typeof headerName === 'string' && isSecretHeader(headerName) && 'value' in fields;
    for (const key of Object.keys(fields)) {
        if (budget.left <= 0) {
            budget.truncated = true;
            break;
        }
        setPlain(result, key, masksValue && key === 'value' ? hide(fields[key]) : fields[key], depth, budget);
    }
    return result;
}

function setPlain(
    target: Record<string, unknown>,
    key: string,
    value: unknown,
    depth: number,
    budget: Budget
): void {
    if (value === undefined) {
        return;
    }
    const masked = secretKey.test(key) ? hide(value) : plain(value, depth + 1, budget);
    // Defined, not assigned: a field named `__proto__` must not become the prototype.
    Object.defineProperty(target, clean(key, 128), {
        value: masked,
        enumerable: true,
        writable: true,
        configurable: true
    });
}

/** Shows whether a secret is set, not its value. A boolean is shown: it can only be a switch. */
function hide(value: unknown): unknown {
    return value === null || value === undefined || typeof value === 'boolean' ? (value ?? null) : mask;
}

function shrink(value: unknown): unknown {
    if (!isFields(value)) {
        return short(value);
    }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, short(item)]));
}

function short(value: unknown): unknown {
    const bytes = Buffer.byteLength(canonicalize(value));
    return bytes > mostBytesOfField ? `[${bytes} bytes]` : value;
}

function namesOf(value: unknown): unknown {
    return isFields(value) ? { fields: Object.keys(value).slice(0, 50) } : short(value);
}

function isFields(value: unknown): value is Fields {
    return (
        typeof value === 'object' &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Date) &&
        !ArrayBuffer.isView(value) &&
        !(value instanceof Map) &&
        !(value instanceof Set)
    );
}
