/** The most frequent paths, addresses, agents and statuses of the requests to each host, by day, in bounded space. */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

import type { AccessRecord, Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

/** What can be asked for. */
type TopKind = 'path' | 'address' | 'agent' | 'status';

/** One value with its requests. */
export interface TopValue {
    readonly value: string;
    readonly requests: number;
    readonly bytes: number;
}

/** Which part of the traffic a top list is asked for. */
export interface TopQuestion {
    /** Null: all hosts. */
    readonly hostId: number | null;
    readonly by: TopKind;
    /** So many days, that of `now` being the last. */
    readonly days: number;
    /** Milliseconds since 1970. */
    readonly now: number;
}

/** How much of an address is kept. */
export type AddressPart = 'full' | 'network' | 'none';

type Sums = [requests: number, bytes: number];

const dayMs = 86_400_000;
/** Days that are kept. */
export const topDays = 7;
/** Beyond so many values of a day, the rarer half is forgotten: a visitor can make up paths without end. */
const mostValues = 20_000;
/** So many are written, the most frequent. */
const mostWritten = 5_000;
const pathCharacters = 300;
const agentCharacters = 200;

/** The statement that makes the table. */
export const topTable = 'create table traffic_top (day integer primary key, data blob not null)';

/** Counts the values of the newest day, and reads those of the days before. */
export class TopCounts {
    #day = 0;
    #values = new Map<string, Sums>();
    #isChanged = false;
    /** A day that is over and not yet written. */
    #finished: { readonly day: number; readonly values: ReadonlyMap<string, Sums> } | null = null;

    /** Goes on with the newest day that was written. */
    async load(db: Db): Promise<void> {
        const [row] = await db.read((em) =>
            em.execute<{ day: number; data: Uint8Array }[]>(
                'select day, data from traffic_top order by day desc limit 1'
            )
        );
        if (row !== undefined) {
            this.#day = row.day;
            this.#values = decode(row.data);
        }
    }

    /** Counts a request. */
    add({ at, hostId, path, ip, agent, status, bytes }: AccessRecord, part: AddressPart): void {
        const day = Math.floor(at.getTime() / dayMs);
        if (day > this.#day) {
            this.#finished = this.#isChanged ? { day: this.#day, values: this.#values } : this.#finished;
            this.#day = day;
            this.#values = new Map();
        }
        const address = keptAddress(ip, part);
        this.#count(hostId, 'path', path.slice(0, pathCharacters), bytes);
        this.#count(hostId, 'status', String(status), bytes);
        this.#count(hostId, 'agent', (agent ?? '').slice(0, agentCharacters), bytes);
        if (address !== null) {
            this.#count(hostId, 'address', address, bytes);
        }
        this.#isChanged = true;
        if (this.#values.size > mostValues) {
            this.#values = new Map(sorted(this.#values).slice(0, mostValues / 2));
        }
    }

    /** Writes the newest day, in the transaction that notes the last record that was counted. */
    async write(em: EntityManager): Promise<void> {
        if (this.#isChanged) {
            this.#isChanged = false;
            const days = [this.#finished, { day: this.#day, values: this.#values }];
            for (const each of days.filter((day) => day !== null)) {
                await em.execute(
                    'insert into traffic_top (day, data) values (?, ?) on conflict (day) do update set data = excluded.data',
                    [each.day, encode(each.values)],
                    'run'
                );
            }
            await em.execute('delete from traffic_top where day <= ?', [this.#day - topDays], 'run');
        }
    }

    /** Says whether what was written is durable; else it is written again. */
    confirm(isDurable: boolean): void {
        this.#isChanged ||= !isDurable;
        this.#finished = isDurable ? null : this.#finished;
    }

    /** The most frequent values of some days. */
    async find(db: Db, asked: TopQuestion, most: number): Promise<readonly TopValue[]> {
        const first = Math.floor(asked.now / dayMs) - asked.days + 1;
        const rows = await db.read((em) =>
            em.execute<{ data: Uint8Array }[]>('select data from traffic_top where day >= ? and day <> ?', [
                first,
                this.#day
            ])
        );
        const parts = rows.map(({ data }) => decode(data));
        const sums = new Map<string, Sums>();
        for (const part of [...parts, ...(this.#day >= first ? [this.#values] : [])]) {
            for (const [key, [requests, bytes]] of part) {
                const [host, kind, value = ''] = split(key);
                if (kind === asked.by && (asked.hostId === null || host === String(asked.hostId))) {
                    const sum = sums.get(value);
                    sums.set(value, [(sum?.[0] ?? 0) + requests, (sum?.[1] ?? 0) + bytes]);
                }
            }
        }
        return sorted(sums)
            .slice(0, most)
            .map(([value, [requests, bytes]]) => ({ value, requests, bytes }));
    }

    #count(hostId: number | null, kind: TopKind, value: string, bytes: number): void {
        const key = `${hostId ?? ''} ${kind} ${value}`;
        const sums = this.#values.get(key);
        if (sums === undefined) {
            this.#values.set(key, [1, bytes]);
        } else {
            sums[0] += 1;
            sums[1] += bytes;
        }
    }
}

/** What is kept of an address; null: nothing. */
export function keptAddress(ip: string, part: AddressPart): string | null {
    return part === 'none' ? null : part === 'full' ? ip : networkOf(ip);
}

/** Cuts an address to the network that it is likely to share with its neighbours: /24, and /48 for IPv6. */
export function networkOf(ip: string): string {
    const plain = ip.replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '');
    if (!plain.includes(':')) {
        return `${plain.split('.').slice(0, 3).join('.')}.0/24`;
    }
    const [head = '', tail] = plain.split('::');
    const before = head === '' ? [] : head.split(':');
    const after = tail === undefined || tail === '' ? [] : tail.split(':');
    const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0');
    const groups = (tail === undefined ? before : [...before, ...zeros, ...after]).slice(0, 3);
    return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/48`;
}

function split(key: string): readonly [host: string, kind: string, value: string] {
    const first = key.indexOf(' ');
    const second = key.indexOf(' ', first + 1);
    return [key.slice(0, first), key.slice(first + 1, second), key.slice(second + 1)];
}

function sorted(values: ReadonlyMap<string, Sums>): [string, Sums][] {
    return [...values].sort(([, a], [, b]) => b[0] - a[0] || b[1] - a[1]);
}

function encode(values: ReadonlyMap<string, Sums>): Buffer {
    return deflateRawSync(JSON.stringify(sorted(values).slice(0, mostWritten)), { level: 1 });
}

function decode(data: Uint8Array): Map<string, Sums> {
    return new Map(JSON.parse(inflateRawSync(data).toString()) as [string, Sums][]);
}
