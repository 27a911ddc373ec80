/** Waits until every server that answers for a name says what was written there: only then is the CA asked to look. */
import { setTimeout as wait } from 'node:timers/promises';

import { DnsFailure, type NameServer } from '../rfc2136/dns-client.ts';
import { authorities, follow, see, type Seen, zoneOf } from './name-servers.ts';
import { WriterFailure } from './solver.ts';

/** The record that is waited for. */
export interface Wanted {
    /** Before any CNAME. */
    readonly name: string;
    readonly value: string;
    /** Asked when the name servers of the zone cannot be found; none: the resolvers are. */
    readonly fallback: readonly NameServer[];
}

/** How the record is waited for. */
export interface VisibilityOptions {
    resolvers(): readonly NameServer[];
    /** How long a record may take. Milliseconds. */
    readonly limitMs: number;
}

const firstPauseMs = 100;
const longestPauseMs = 5_000;

/** @throws WriterFailure when the time is up, with what was seen; or the signal's reason */
export async function untilVisible(
    { resolvers, limitMs }: VisibilityOptions,
    wanted: Wanted,
    signal: AbortSignal,
    saw: (seen: readonly Seen[]) => void = () => undefined
): Promise<readonly Seen[]> {
    const end = performance.now() + limitMs;
    const { name, servers, recurse } = await find(resolvers(), wanted, signal);
    for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 1.6)) {
        const seen = await see(servers, name, recurse, signal);
        saw(seen);
        const heard = seen.filter(({ error }) => error === null);
        if (heard.length > 0 && heard.every(({ values }) => values.includes(wanted.value))) {
            return seen;
        }
        if (performance.now() + pause > end) {
            const missing = seen.map(
                ({ server, values, error }) =>
                    `${server}: ${error ?? (values.length === 0 ? 'no record' : `${values.length} other records`)}`
            );
            throw new WriterFailure(
                'DNS_NOT_VISIBLE',
                `The TXT record at ${name} was written, but after ${Math.round(limitMs / 1000)} s not every name server has it (${missing.join('; ')})`
            );
        }
        await wait(pause, undefined, { signal });
    }
}

async function find(
    resolvers: readonly NameServer[],
    { name, fallback }: Wanted,
    signal: AbortSignal
): Promise<{
    readonly name: string;
    readonly servers: readonly (NameServer & { readonly name?: string })[];
    readonly recurse: boolean;
}> {
    try {
        const at = await follow(resolvers, name, true, signal);
        const servers = await authorities(resolvers, await zoneOf(resolvers, at, true, signal), signal);
        if (servers.length > 0) {
            return { name: at, servers, recurse: false };
        }
    } catch (error) {
        if (!(error instanceof DnsFailure)) {
            throw error;
        }
    }
    return fallback.length > 0
        ? { name: await follow(fallback, name, false, signal), servers: fallback, recurse: false }
        : { name, servers: resolvers, recurse: true };
}
