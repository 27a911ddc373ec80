/** What the suite asks a plugin: what its author says, else every route that reads and needs no more than its path. */
import type { RouteDocument } from '@portico/sdk/host';

import type { Who } from '../doubles/people.ts';
import type { TestHost } from '../panel/host.ts';
import { errorOf, type Finding } from './finding.ts';

/** One request that the suite makes. */
export interface ConformanceRequest {
    /** Default GET. */
    readonly method?: string;
    /** Below the plugin's own, with its query. */
    readonly path: string;
    readonly body?: object;
    /** Default `admin`. */
    readonly as?: Who;
    /** The status that it must be answered with; default: any below 500. */
    readonly status?: number;
}

/** Every route that reads and needs no parameter. */
export function requestsOf(routes: readonly RouteDocument[]): readonly ConformanceRequest[] {
    return routes
        .filter(
            ({ kind, methods, path }) =>
                (kind === 'json' || kind === 'download') && methods.includes('GET') && !path.includes('{')
        )
        .map(({ path }) => ({ path }));
}

/** What each was answered, as text. */
export async function askAll(
    host: TestHost,
    requests: readonly ConformanceRequest[]
): Promise<readonly string[]> {
    const answers: string[] = [];
    for (const { method = 'GET', path, body, as = 'admin' } of requests) {
        const { status, text } = await host.as(as).ask(method, path, body);
        answers.push(`${status} ${text}`);
    }
    return answers;
}

/** Asks each once: an answer of 500 and above is a fault, unless the author expects it. */
export async function checkRequests(
    host: TestHost,
    requests: readonly ConformanceRequest[]
): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    for (const { method = 'GET', path, body, as = 'admin', status: expected } of requests) {
        const { status, text } = await host.as(as).ask(method, path, body);
        if (expected === undefined ? status >= 500 : status !== expected) {
            findings.push(
                errorOf(
                    'requests',
                    `${method} ${path}`,
                    `It is answered with ${status}${expected === undefined ? '' : `, and ${expected} is expected`}: ${text.slice(0, 200)}`,
                    'Mend the route, or say in conformance.json which `status` this request gets without the machine: { "path", "status": 502 }'
                )
            );
        }
    }
    return findings;
}
