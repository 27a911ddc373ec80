/** Asks a name server. */
import { Resolver } from 'node:dns/promises';
import { isIPv6 } from 'node:net';

import { messageOf } from '@portico/sdk';

import { type CheckSpec, splitTarget } from '../spec.ts';
import type { Attempt } from './attempt.ts';
import { ProbeFailure } from './outcome.ts';

const noAnswers = new Set(['ENODATA', 'ENOTFOUND']);

/** Resolves the name at the server that `expect` names, else at the machine's own. Returns the milliseconds of the answer. @throws ProbeFailure */
export async function probeDns(attempt: Attempt, { target, expect }: CheckSpec): Promise<number> {
    const resolver = new Resolver({ tries: 2 });
    const cancel = (): void => resolver.cancel();
    attempt.signal.addEventListener('abort', cancel, { once: true });
    try {
        if (expect.server !== undefined) {
            const { host, port } = splitTarget(expect.server, 53);
            // Each address was checked, and the resolver connects to nothing else.
            const addresses = await attempt.addresses(host);
            resolver.setServers(
                addresses.map((address) => (isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`))
            );
        }
        const type = expect.type ?? 'A';
        const began = attempt.elapsedMs;
        const found = await attempt.step('firstByte', () => ask(resolver, target, type));
        const missing = (expect.values ?? []).filter(
            (value) => !found.some((each) => each.toLowerCase() === value.toLowerCase().replace(/\.$/, ''))
        );
        if (missing.length > 0) {
            throw new ProbeFailure('VALUE_MISSING', `The answer lacks ${missing.join(', ')}`);
        }
        return attempt.elapsedMs - began;
    } finally {
        attempt.signal.removeEventListener('abort', cancel);
        resolver.cancel();
    }
}

async function ask(resolver: Resolver, name: string, type: string): Promise<readonly string[]> {
    try {
        return textsOf(await resolver.resolve(name, type));
    } catch (error) {
        const { code = '' } = error as { code?: string };
        throw noAnswers.has(code)
            ? new ProbeFailure('NAME_NOT_FOUND', `There is no ${type} record of ${name}`)
            : new ProbeFailure(
                  'ANSWER_FAILED',
                  `The name server does not answer: ${code || messageOf(error)}`
              );
    }
}

/** One text for each record, as a zone file has it. */
function textsOf(records: unknown): readonly string[] {
    return (Array.isArray(records) ? (records as readonly unknown[]) : []).map((record) => {
        if (Array.isArray(record)) {
            return record.join('');
        }
        if (typeof record !== 'object' || record === null) {
            return String(record);
        }
        const { priority, weight, port, exchange, name, critical, ...rest } = record as Record<
            string,
            unknown
        >;
        return critical === undefined
            ? [priority, weight, port, exchange ?? name].filter((part) => part !== undefined).join(' ')
            : [critical, ...Object.entries(rest).flat()].join(' ');
    });
}
