/**
 * Turns the sites of a Caddy configuration into hosts. Where the fields of a host can say all that a site does, they do; otherwise the
 * site's routes go into `advanced` unchanged, so that it still serves the same. Pure.
 */
import { type Json, list, record } from '../json.ts';
import { droppedOf, droppedOfSite } from './dropped.ts';
import { type Modelled, modelSite } from './site.ts';

/** The hosts of a Caddy configuration. */
export interface CaddyHosts {
    readonly hosts: readonly Json[];
    /** bcrypt hashes of passwords, by their path in the section. */
    readonly hashes: ReadonlyMap<string, string>;
    readonly notes: readonly string[];
    readonly hostNotes: readonly { readonly name: string; readonly message: string }[];
}

interface Server {
    readonly listen: readonly string[];
    readonly routes: readonly Json[];
    readonly secure: boolean;
    /** The route as the configuration has it. */
    readonly source: Json;
}

interface Site {
    readonly names: readonly string[];
    readonly routes: Json[];
    readonly server: Server;
}

/** A name that the panel takes as it is; other names are checked when the host is created. */
const nameForm = /^(?:\*\.)?[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+$/u;

/** Translates a Caddy configuration to hosts. Pure. */
export function hostsOfCaddy(config: Json): CaddyHosts {
    const http = record(record(config['apps'])['http']);
    const notes: string[] = [];
    const hostNotes: { name: string; message: string }[] = [];
    const hashes = new Map<string, string>();
    const hosts: Json[] = [];
    const taken = new Set<string>();
    const tls = tlsOf(config);
    const servers = Object.values(record(http['servers'])).map((server) => serverOf(record(server), http));
    // A name that is served by HTTP and by HTTPS becomes the site that HTTPS serves.
    for (const server of servers.toSorted((a, b) => Number(b.secure) - Number(a.secure))) {
        for (const site of sitesOf(server, notes)) {
            const names = site.names.filter((name) => !taken.has(name));
            names.forEach((name) => taken.add(name));
            const [domain, ...aliases] = names;
            if (domain === undefined) {
                notes.push(
                    `Left out: ${site.names.join(', ')} on ${server.listen.join(', ')}, which another site is named after already`
                );
                continue;
            }
            const modelled = modelSite(site.routes);
            hosts.push(
                hostOf(domain, aliases, server, modelled, tls, (message) =>
                    hostNotes.push({ name: domain, message })
                )
            );
            modelled.hashes.forEach((hash, username) => hashes.set(`${domain}/basicAuth/${username}`, hash));
        }
    }
    return { hosts, hashes, notes: [...notes, ...droppedOf(config)], hostNotes };
}

function hostOf(
    domain: string,
    aliases: readonly string[],
    server: Server,
    { fields, advanced, reason, notes }: Modelled,
    tls: Tls,
    note: (message: string) => void
): Json {
    const wildcard = [domain, ...aliases].some((name) => name.startsWith('*.'));
    const internal = [domain, ...aliases].every((name) => tls.internal(name));
    if (reason !== null) {
        note(`becomes advanced, as it stands: ${reason}`);
    }
    [...notes, ...droppedOfSite(server.source, [domain, ...aliases])].forEach(note);
    if (server.secure && wildcard && !internal) {
        note('sslMode is internal: a wildcard name needs a certificate of POST /api/certificates');
    }
    if (server.listen.some((address) => !/:(?:80|443)$/.test(address))) {
        note(`was served on ${server.listen.join(', ')}, and is served on the ports of this engine`);
    }
    return {
        domain,
        aliases,
        ...fields,
        ...(advanced === null ? {} : { advanced }),
        ssl: server.secure,
        ...(server.secure ? { sslMode: internal || wildcard ? 'internal' : 'auto' } : {})
    };
}

function serverOf(server: Json, http: Json): Server {
    const listen = list(server['listen']).filter((address): address is string => typeof address === 'string');
    const plainPort = String(http['http_port'] ?? 80);
    const off = record(server['automatic_https'])['disable'] === true;
    const plain = listen.every((address) => address.endsWith(`:${plainPort}`));
    return {
        listen,
        routes: list(server['routes']).map(record),
        source: server,
        secure: !plain && (!off || server['tls_connection_policies'] !== undefined)
    };
}

/** The sites of a server, grouped by their names. */
function sitesOf(server: Server, notes: string[]): readonly Site[] {
    const sites = new Map<string, Site>();
    for (const route of server.routes) {
        const sets = list(route['match']).map(record);
        const names = sets
            .flatMap((set) => list(set['host']))
            .filter((name): name is string => typeof name === 'string')
            .map((name) => name.toLowerCase());
        if (names.length === 0 || sets.some((set) => list(set['host']).length === 0)) {
            notes.push(
                `Left out: a route on ${server.listen.join(', ')} that is for every name; a host has one`
            );
            continue;
        }
        const good = [...new Set(names.filter((name) => nameForm.test(name) && !/^[\d.]+$/.test(name)))];
        const bad = names.filter((name) => !good.includes(name));
        if (bad.length > 0) {
            notes.push(
                `Left out: ${bad.join(', ')}, which ${bad.length === 1 ? 'is no name' : 'are no names'} of a host`
            );
        }
        if (good.length === 0) {
            continue;
        }
        const site = sites.get(good.join(' ')) ?? { names: good, routes: [], server };
        const rest = sets.map(({ host: _host, ...others }) => others);
        const { match: _match, terminal: _terminal, ...own } = route;
        site.routes.push(rest.every((set) => Object.keys(set).length === 0) ? own : { ...own, match: rest });
        sites.set(good.join(' '), site);
    }
    return [...sites.values()];
}

interface Tls {
    internal(name: string): boolean;
}

function tlsOf(config: Json): Tls {
    const tls = record(record(config['apps'])['tls']);
    const policies = list(record(tls['automation'])['policies']).map(record);
    const isInternal = (policy: Json): boolean =>
        list(policy['issuers']).some((issuer) => record(issuer)['module'] === 'internal');
    return {
        internal(name) {
            const policy = policies.find(
                (each) => each['subjects'] === undefined || list(each['subjects']).includes(name)
            );
            return policy !== undefined && isInternal(policy);
        }
    };
}
