/** Where a name really lives: behind which CNAME, in which zone, at which servers; and what they say of its TXT records. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

import { ask, DnsFailure, type NameServer, rcodes, serverName } from '../rfc2136/dns-client.ts';
import { type DnsRecord, type Message, recordTypes, targetOf, textOf } from '../rfc2136/dns-message.ts';

const mostAliases = 8;
const mostServers = 8;
const dnsPort = 53;

/** What one server says of a name's TXT records. */
export interface Seen {
    /** Its name or address. */
    readonly server: string;
    readonly values: readonly string[];
    /** Why it said nothing; null when it answered. */
    readonly error: string | null;
}

/** Reads a name server as an admin typed it: a name or an address, with or without a port. Null when it is neither. */
export function readServer(text: string): { readonly host: string; readonly port: number } | null {
    if (isIP(text) !== 0) {
        return { host: text, port: dnsPort };
    }
    const [, bracketed, plain, port] =
        /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]{1,253}))(?::(\d{1,5}))?$/.exec(text) ?? [];
    const host = bracketed ?? plain;
    const number = port === undefined ? dnsPort : Number(port);
    return host === undefined ||
        number < 1 ||
        number > 65_535 ||
        (bracketed !== undefined && isIP(bracketed) !== 6)
        ? null
        : { host, port: number };
}

/** The addresses of a name server as an admin typed it. @throws DnsFailure when it has none */
export async function serversOf(text: string): Promise<readonly NameServer[]> {
    const server = readServer(text);
    if (server === null) {
        throw new DnsFailure(`${text} is not a name server`);
    }
    if (isIP(server.host) !== 0) {
        return [{ address: server.host, port: server.port }];
    }
    try {
        return (await lookup(server.host, { all: true }))
            .slice(0, mostServers)
            .map(({ address }) => ({ address, port: server.port }));
    } catch (error) {
        throw new DnsFailure(`The name server ${server.host} does not resolve`, { cause: error });
    }
}

/** The first of several servers that answers. @throws DnsFailure of the last, or the signal's reason */
export async function firstOf<T>(
    servers: readonly NameServer[],
    work: (server: NameServer) => Promise<T>
): Promise<T> {
    let last: unknown = new DnsFailure('There is no name server to ask');
    for (const server of servers) {
        try {
            return await work(server);
        } catch (error) {
            if (!(error instanceof DnsFailure)) {
                throw error;
            }
            last = error;
        }
    }
    throw last;
}

/** The zone that a name lies in, as this server knows it (the owner of the SOA record that it gives). @throws DnsFailure */
export async function zoneOf(
    servers: readonly NameServer[],
    name: string,
    recurse: boolean,
    signal: AbortSignal
): Promise<string> {
    const labels = name.split('.');
    let refused = '';
    for (let first = 0; first < labels.length; first += 1) {
        const candidate = labels.slice(first).join('.');
        const reply = await firstOf(servers, (server) => ask(server, candidate, 'SOA', { recurse, signal }));
        const owner = soaOf(reply, candidate);
        if (owner !== null) {
            return owner;
        }
        refused = reply.rcode === 0 ? refused : (rcodes[reply.rcode] ?? String(reply.rcode));
    }
    throw new DnsFailure(
        `The name server ${servers.map(serverName).join(', ')} knows no zone of ${name}${refused === '' ? '' : ` (${refused})`}`
    );
}

/** The owner of the SOA record in an answer, or of the one beside a negative answer. A referral to the root is no answer. */
function soaOf(reply: Message, name: string): string | null {
    const record = [...reply.answers, ...reply.authority].find(
        ({ type, name: owner }) => type === recordTypes.SOA && (owner === name || name.endsWith(`.${owner}`))
    );
    return record === undefined || record.name === '' ? null : record.name;
}

/** Follows CNAME records from a name to where its records really are (RFC 8555, section 8.4, lets a CA do the same). @throws DnsFailure when they lead in a circle */
export async function follow(
    servers: readonly NameServer[],
    name: string,
    recurse: boolean,
    signal: AbortSignal
): Promise<string> {
    let at = name.toLowerCase();
    for (let count = 0; count <= mostAliases; count += 1) {
        const reply = await firstOf(servers, (server) => ask(server, at, 'CNAME', { recurse, signal }));
        const alias = reply.answers.find(
            ({ type, name: owner }) => type === recordTypes.CNAME && owner === at
        );
        if (alias === undefined) {
            return at;
        }
        at = targetOf(reply, alias);
    }
    throw new DnsFailure(`The CNAME records of ${name} do not come to an end`);
}

/** The servers that answer for a zone, by its NS records. @throws DnsFailure */
export async function authorities(
    resolvers: readonly NameServer[],
    zone: string,
    signal: AbortSignal
): Promise<readonly (NameServer & { readonly name: string })[]> {
    const reply = await firstOf(resolvers, (server) => ask(server, zone, 'NS', { recurse: true, signal }));
    const names = reply.answers
        .filter(({ type }) => type === recordTypes.NS)
        .map((record) => targetOf(reply, record))
        .slice(0, mostServers);
    const found = await Promise.all(
        names.map(async (name) =>
            (await addresses(resolvers, name, signal)).map((address) => ({ name, address, port: dnsPort }))
        )
    );
    return found.flat();
}

async function addresses(
    resolvers: readonly NameServer[],
    name: string,
    signal: AbortSignal
): Promise<readonly string[]> {
    const reply = await firstOf(resolvers, (server) => ask(server, name, 'A', { recurse: true, signal }));
    const four = reply.answers
        .filter(({ type, data }) => type === recordTypes.A && data.length === 4)
        .map(({ data }) => [...data].join('.'));
    if (four.length > 0) {
        return four.slice(0, 1);
    }
    const six = await firstOf(resolvers, (server) => ask(server, name, 'AAAA', { recurse: true, signal }));
    return six.answers
        .filter(({ type, data }) => type === recordTypes.AAAA && data.length === 16)
        .map(({ data }) => data.toString('hex').replace(/(....)(?=.)/g, '$1:'))
        .slice(0, 1);
}

/** What each server says of a name's TXT records, asked at the same time. */
export function see(
    servers: readonly (NameServer & { readonly name?: string })[],
    name: string,
    recurse: boolean,
    signal: AbortSignal
): Promise<readonly Seen[]> {
    return Promise.all(
        servers.map(async (server): Promise<Seen> => {
            const shown = server.name ?? serverName(server);
            try {
                const reply = await ask(server, name, 'TXT', { recurse, signal });
                const found = reply.answers.filter(({ type }: DnsRecord) => type === recordTypes.TXT);
                return {
                    server: shown,
                    values: found.map(textOf),
                    error:
                        reply.rcode === 0 || reply.rcode === 3
                            ? null
                            : (rcodes[reply.rcode] ?? `code ${reply.rcode}`)
                };
            } catch (error) {
                signal.throwIfAborted();
                return {
                    server: shown,
                    values: [],
                    error: error instanceof Error ? error.message : 'unknown'
                };
            }
        })
    );
}
