/** What is taken out of every text before a model sees it. */
import { hostname } from 'node:os';

import type { Settings } from '../settings.ts';

/** What was found, by kind. */
export interface Found {
    readonly kind: string;
    readonly count: number;
}

/** A kind of secret, and how it is found. The group `keep`, where there is one, stays. */
interface Rule {
    readonly kind: string;
    readonly pattern: RegExp;
}

/** In place of what was removed. */
const removed = (kind: string): string => `[removed:${kind}]`;
const marker = /\[removed:[a-z-]+\]/;

const rules: readonly Rule[] = [
    {
        kind: 'private-key',
        pattern: /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?(?:-----END \1-----|$)/g
    },
    // An unfinished block of a log that was cut in front: a key without its head.
    {
        kind: 'private-key',
        pattern: /(?:^[A-Za-z0-9+/=]{60,76}\r?\n){2,100}[A-Za-z0-9+/=]*\r?\n?-----END [A-Z0-9 ]+-----/gm
    },
    {
        kind: 'url-password',
        pattern: /(?<keep>\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@'"]{0,200}:)[^\s@/'"]{1,500}(?=@)/gi
    },
    { kind: 'authorization', pattern: /(?<keep>\b(?:Bearer|Basic|Token|Digest)\s+)[A-Za-z0-9._~+/=-]{8,}/gi },
    { kind: 'token', pattern: /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?/g },
    {
        kind: 'token',
        pattern:
            /\b(?:gh[pousr]|github_pat|glpat|xox[abprs]|npm|hf|dop_v1|sk|pk|rk|whsec|pat)[_-][A-Za-z0-9_-]{16,}/g
    },
    { kind: 'token', pattern: /\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b/g },
    { kind: 'token', pattern: /\bAIza[A-Za-z0-9_-]{30,}/g },
    { kind: 'token', pattern: /\bptc_[A-Za-z0-9_-]{16,}/g },
    { kind: 'hash', pattern: /\$(?:2[abxy]|argon2(?:id|i|d)|scrypt|5|6|y)\$[A-Za-z0-9./+$=,-]{20,}/g },
    {
        kind: 'password',
        pattern:
            /(?<keep>["']?\b[\w.-]{0,60}(?:passwor[dt]|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?token|token|credentials?)["']?\s*(?:=>|[:=](?!>))\s*)(?!\s*(?:null|true|false|\{|\[)|["']?\[removed:)(?:"(?:[^"\\\n]|\\.)+"|'(?:[^'\\\n]|\\.)+'|[^\s"',;{}[\]]+)/gi
    },
    {
        kind: 'password',
        pattern:
            /(?<keep>(?:^|\s)(?:--?(?:password|passwd|token|secret|api-key)[= ])|\bIDENTIFIED BY\s+)(?:'[^'\n]+'|"[^"\n]+"|[^\s'"]+)/gi
    }
];

const address4 = /(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.]*\d)/g;
const address6 =
    /(?<![\w:.])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){0,6}(?::)?(?![\w:])|(?<![\w:.])::(?:[0-9a-f]{1,4}:?){1,7}(?![\w:])/gi;
const mail =
    /(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,10}[A-Za-z]{2,24}\b/g;
const hostName =
    /(?<![\w.@/-])(?:https?:\/\/)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,24}|xn--[a-z0-9-]{2,59})(?![\w-]|\.\w)/gi;

/** A name without a dot where a host stands: behind `//`, with the login of an address or without. */
const plainHost =
    /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/(?:[^\s/@]{1,128}@)?)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?=[:/?#\s"'`)\],;]|$)/gi;
/** The same with a port that a service has: four or five digits, which a time or a ratio has not. */
const hostAndPort = /(?<![\w.@/:-])[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?=:\d{4,5}(?![\d.:]))/gi;

/** Words before a number that name no host. */
const noPlainHost = /^(?:localhost|ports?|[pug]?id|size|line|code|time|ttl|ms|https?|tcp|udp)$/i;

/** Names that look like hosts and are files, and names that say nothing about a machine. */
const noHost =
    /\.(?:conf|cfg|ini|log|txt|md|ya?ml|json|toml|xml|html?|css|m?js|tsx?|jsx|php|py|rb|go|rs|sh|sql|sock|service|timer|pid|lock|gz|zip|tar|pem|key|crt|png|jpe?g|svg|env|list|get|create|update|delete|remove|status)$|(?:^|\.)(?:localhost|example|invalid)$/i;

/** What stands for a name or address. It is itself a valid one, so that it fits where the other did. */
const shapes = {
    address: (n: number) => `address-${n}.placeholder.invalid`,
    mail: (n: number) => `mail-${n}@placeholder.invalid`,
    host: (n: number) => `host-${n}.placeholder.invalid`
} as const;
const placeholder = /(?:address|host)-\d+\.placeholder\.invalid|mail-\d+@placeholder\.invalid/g;
/** The end of a text that may be the beginning of a placeholder. */
const unfinished = /[A-Za-z0-9.@-]{1,64}$/;

/** Takes secrets out of texts; with `strict`, it puts placeholders in the place of names and addresses, and knows them again. */
export class Redactor {
    readonly #rules: readonly Rule[];
    readonly #isStrict: boolean;
    readonly #hosts: readonly string[];
    /** By what it stands for. */
    readonly #placeholders: Map<string, string>;
    readonly #counts = new Map<string, number>();

    /**
     * @param known - the placeholders that an earlier request of the same conversation used
     * @param hosts - names without a dot that are hosts wherever they stand
     */
    constructor(
        { redaction, redactPatterns }: Pick<Settings, 'redaction' | 'redactPatterns'>,
        known: Readonly<Record<string, string>> = {},
        hosts: readonly string[] = [hostname()]
    ) {
        this.#hosts = hosts;
        this.#isStrict = redaction === 'strict';
        this.#rules = [
            ...redactPatterns.map((pattern) => ({ kind: 'pattern', pattern: new RegExp(pattern, 'gu') })),
            ...rules
        ];
        this.#placeholders = new Map(Object.entries(known));
    }

    /** The placeholders by what they stand for, to be kept with the conversation. */
    get placeholders(): Readonly<Record<string, string>> {
        return Object.fromEntries(this.#placeholders);
    }

    /** What was found up to now. */
    get found(): Found[] {
        return [...this.#counts].map(([kind, count]) => ({ kind, count }));
    }

    /** A text as a model may see it. */
    text(text: string): string {
        const clean = this.#rules.reduce(
            (rest, { kind, pattern }) =>
                rest.replace(pattern, (...match: unknown[]) => {
                    const groups = match.at(-1);
                    const keep =
                        typeof groups === 'object' && groups !== null
                            ? ((groups as { keep?: string }).keep ?? '')
                            : '';
                    // An empty match of a pattern of the admin removes nothing.
                    return match[0] === '' ? '' : keep + this.#count(kind, removed(kind));
                }),
            text
        );
        return this.#isStrict ? this.#hide(clean) : clean;
    }

    /** A value as a model may see it: every text in it, keys of objects too. A value under a name such as `password` goes whole. */
    value(value: unknown, key = ''): unknown {
        if (typeof value === 'string') {
            return secretName.test(key) && value !== '' && !isMask(value)
                ? this.#count('password', removed('password'))
                : this.text(value);
        }
        if (Array.isArray(value)) {
            return value.map((each) => this.value(each, key));
        }
        if (typeof value === 'object' && value !== null) {
            return Object.fromEntries(
                Object.entries(value).map(([name, each]) => [this.text(name), this.value(each, name)])
            );
        }
        return value;
    }

    /** A text of the model with the names and addresses that its placeholders stand for. */
    restore(text: string): string {
        if (this.#placeholders.size === 0) {
            return text;
        }
        const names = new Map([...this.#placeholders].map(([name, standIn]) => [standIn, name]));
        return text.replace(placeholder, (found) => names.get(found) ?? found);
    }

    /** The same for a value. */
    restoreValue(value: unknown): unknown {
        return typeof value === 'string'
            ? this.restore(value)
            : Array.isArray(value)
              ? value.map((each) => this.restoreValue(each))
              : typeof value === 'object' && value !== null
                ? Object.fromEntries(
                      Object.entries(value).map(([name, each]) => [
                          this.restore(name),
                          this.restoreValue(each)
                      ])
                  )
                : value;
    }

    /** Restores a text that comes in pieces: what may be the beginning of a placeholder is held back until the next piece. */
    restorer(): { push(delta: string): string; end(): string } {
        let held = '';
        return {
            push: (delta) => {
                held += delta;
                if (this.#placeholders.size === 0) {
                    const all = held;
                    held = '';
                    return all;
                }
                const at = unfinished.exec(held)?.index ?? held.length;
                const done = held.slice(0, at);
                held = held.slice(at);
                return this.restore(done);
            },
            end: () => {
                const rest = this.restore(held);
                held = '';
                return rest;
            }
        };
    }

    #hide(text: string): string {
        return text
            .replace(mail, (found) => this.#standIn('mail', found))
            .replace(address4, (found) => this.#standIn('address', found))
            .replace(address6, (found) => (isAddress6(found) ? this.#standIn('address', found) : found))
            .replace(hostName, (found) => {
                const scheme = /^https?:\/\//i.exec(found)?.[0] ?? '';
                const name = found.slice(scheme.length);
                return noHost.test(name) ? found : scheme + this.#standIn('host', name);
            })
            .replace(plainHost, (found) => this.#plainStandIn(found))
            .replace(hostAndPort, (found) => this.#plainStandIn(found))
            .replace(knownNames(this.#hosts), (found) => this.#standIn('host', found));
    }

    #plainStandIn(found: string): string {
        return noPlainHost.test(found) ? found : this.#standIn('host', found);
    }

    #standIn(kind: keyof typeof shapes, found: string): string {
        if (found.endsWith('placeholder.invalid')) {
            return found;
        }
        const known = this.#placeholders.get(found);
        if (known !== undefined) {
            return this.#count(kind, known);
        }
        const made = shapes[kind](
            [...this.#placeholders.values()].filter((each) => each.startsWith(`${kind}-`)).length + 1
        );
        this.#placeholders.set(found, made);
        return this.#count(kind, made);
    }

    #count(kind: string, text: string): string {
        this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
        return text;
    }
}

/** Names as whole words. The beginning of a host's own name, as in `db1.shop.test`, was replaced with it before. */
function knownNames(hosts: readonly string[]): RegExp {
    const literal = hosts
        .filter((name) => /^[a-z0-9-]{2,63}$/i.test(name) && name.toLowerCase() !== 'localhost')
        .join('|');
    return literal === '' ? /(?!)/g : new RegExp(`(?<![\\w.-])(?:${literal})(?![\\w-]|\\.\\w)`, 'gi');
}

/** Whether a value holds a mark of something that was removed: it must not be written anywhere. */
export function hasRemoved(value: unknown): boolean {
    return marker.test(JSON.stringify(value) ?? '');
}

const secretName =
    /(?:passwor[dt]|passwd|passphrase|secret|api[_-]?key|private[_-]?key|access[_-]?key|token)$/i;
const isMask = (value: string): boolean => /^(?:\*+|\[secret\]|\[removed:[a-z-]+\])$/.test(value);
const isAddress6 = (found: string): boolean => {
    const groups = found.split(':').filter((each) => each !== '');
    return found.includes('::') ? groups.length <= 7 && groups.length > 0 : groups.length === 8;
};
