/** The newest requests to the hosts, as lines of a log. */
import type { AccessRecord } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { type AddressPart, keptAddress } from '../traffic/top.ts';
import type { FollowedLine, FollowOptions } from './follow.ts';
import type { LogLine } from './line.ts';
import { isWanted, type LogPage, type LogQuery } from './query.ts';

/** So many requests are kept, in memory. */
const mostRequests = 5_000;

/** A line of one request. */
function requestLine(
    { at, hostId, method, path, status, bytes, ms, ip, agent }: AccessRecord,
    part: AddressPart
): LogLine {
    const address = keptAddress(ip, part);
    return {
        at: at.toISOString(),
        level: status >= 500 || status === 0 ? 'error' : status >= 400 ? 'warning' : 'info',
        text: `${method} ${path} ${status}`,
        fields: { hostId, status, bytes, ms, agent, ...(address === null ? {} : { address }) }
    };
}

/** Keeps the newest requests that the plugin has read. They become lines when they are asked for: thousands may come in a second. */
export class Requests {
    #records: AccessRecord[] = [];
    /** The number of the first record that is kept. */
    #first = 0;

    /** Keeps a request, and forgets the oldest. */
    add(record: AccessRecord): void {
        this.#records.push(record);
        if (this.#records.length >= 2 * mostRequests) {
            this.#first += this.#records.length - mostRequests;
            this.#records = this.#records.slice(-mostRequests);
        }
    }

    /** One page, the newest line first. @param cursor - of the page before */
    find(
        query: LogQuery,
        part: AddressPart,
        { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined }
    ): LogPage {
        const end = this.#first + this.#records.length;
        const oldest = Math.max(this.#first, end - mostRequests);
        const lines: LogLine[] = [];
        let number = Math.min(end, /^\d{1,15}$/.test(cursor ?? '') ? Number(cursor) : end);
        while (number > oldest && lines.length < limit) {
            number -= 1;
            const line = requestLine(this.#records[number - this.#first] as AccessRecord, part);
            if (isWanted(line, query)) {
                lines.push(line);
            }
        }
        return { lines, next: number > oldest ? String(number) : null };
    }
}

/** Follows the requests. They have no ids that last, so a client begins anew. */
export async function* followRequests(
    ctx: Ctx,
    { query, signal }: FollowOptions
): AsyncGenerator<FollowedLine> {
    for await (const record of ctx.accessLog({ signal })) {
        const line = requestLine(record, ctx.settings.trafficAddresses);
        if (isWanted(line, query)) {
            yield { id: 'access', line };
        }
    }
}
