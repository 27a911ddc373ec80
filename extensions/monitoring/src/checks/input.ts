/** What a body of a check must be beyond its shape: what fits to its kind. */
import { errors, joi } from '@portico/sdk';

import { readHeaders } from '../headers.ts';
import { type CheckKind, type Expect, type NewCheck, newCheck } from './schema.ts';
import { isHost, splitTarget } from './spec.ts';

/** The fields of a check, with the values of its headers. */
export interface CheckFields {
    readonly name: string;
    readonly kind: CheckKind;
    readonly target: string;
    readonly intervalSeconds: number;
    readonly timeoutSeconds: number;
    readonly retries: number;
    readonly enabled: boolean;
    readonly tags: readonly string[];
    readonly expect: Omit<Expect, 'headers'>;
    readonly headers: Readonly<Record<string, string>>;
}

type Problem = { readonly path: string; readonly message: string };

const expected: Readonly<Record<CheckKind, readonly string[]>> = {
    http: ['method', 'headers', 'status', 'text', 'json', 'certificateDays'],
    tcp: ['send', 'receive'],
    dns: ['type', 'server', 'values'],
    tls: ['certificateDays'],
    ping: []
};
/**
 * The fields of a new check. @param before - those of the stored check, whose headers a body can keep
 *
 * @throws VALIDATION_FAILED 40001
 */
export function fieldsOf(input: NewCheck, before: CheckFields | null): CheckFields {
    const { headers: given = {}, ...expect } = input.expect;
    const { headers, problems: wrong } = readHeaders(given, before?.headers ?? {}, 'expect.headers');
    const problems: Problem[] = [...targetProblems(input.kind, input.target), ...wrong];
    for (const key of Object.keys(input.expect)) {
        if (!expected[input.kind].includes(key)) {
            problems.push({
                path: `expect.${key}`,
                message: `A check of the kind ${input.kind} expects no ${key}`
            });
        }
    }
    if (expect.server !== undefined && !isEndpoint(expect.server, 53)) {
        problems.push({
            path: 'expect.server',
            message: 'server must be an address or a name, with or without a port'
        });
    }
    if (input.name.trim() !== input.name) {
        problems.push({ path: 'name', message: 'name must not begin or end with a space' });
    }
    if (problems.length > 0) {
        throw errors.invalid(problems);
    }
    const { name, kind, target, intervalSeconds, timeoutSeconds, retries, enabled, tags } = input;
    return { name, kind, target, intervalSeconds, timeoutSeconds, retries, enabled, tags, expect, headers };
}

/** Reads the checks of an export, which another version may have written. @throws TypeError when they are not checks */
export function exportedChecks(data: unknown): readonly NewCheck[] {
    const { checks } = (data ?? {}) as { readonly checks?: unknown };
    const { error, value } = joi.array().items(newCheck).required().validate(checks);
    if (error !== undefined) {
        throw new TypeError(`The exported checks cannot be read: ${error.message}`);
    }
    return value as readonly NewCheck[];
}

function targetProblems(kind: CheckKind, target: string): readonly Problem[] {
    const wrong = (message: string): readonly Problem[] => [{ path: 'target', message }];
    switch (kind) {
        case 'http': {
            const url = URL.parse(target);
            return url === null || !/^https?:$/.test(url.protocol) || url.hostname === ''
                ? wrong('target must be an address with http:// or https://')
                : url.username !== '' || url.password !== ''
                  ? wrong('target must not hold a name or a password: use expect.headers, which are sealed')
                  : [];
        }
        case 'tcp':
            return isEndpoint(target, 0) ? [] : wrong('target must be host:port');
        case 'tls':
            return isEndpoint(target, 443) ? [] : wrong('target must be a host, or host:port');
        case 'dns':
        case 'ping':
            return isHost(target) ? [] : wrong('target must be a name or an address');
    }
}

function isEndpoint(text: string, usual: number): boolean {
    const { host, port } = splitTarget(text, usual);
    return isHost(host) && port >= 1;
}
