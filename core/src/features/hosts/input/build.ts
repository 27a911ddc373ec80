/**
 * Builds a host from a body and the host as it is: merges one level deep, brings everything to one spelling and checks the rules between
 * fields. Pure; rules that need the machine or other hosts are in `rules/safety.ts`.
 */
import type { HostRow } from '../../../engine/change.ts';
import type { Site, SiteType } from '../../../engine/site.ts';
import type { HostChange } from '../schema/bodies.ts';
import { buildAccess } from './access.ts';
import { buildErrorPages, buildRedirect, readAdvanced, readFolder, readIndexFiles } from './content.ts';
import { buildCors, buildOperations, buildRequestOperations } from './headers.ts';
import { merge, mergePlain } from './merge.ts';
import { fastcgiAddress, type Faults, siteName } from './normalise.ts';
import {
    buildHealthCheck,
    buildLoadBalancing,
    buildLocations,
    buildUpstreams,
    buildWeighted
} from './proxy.ts';
import { buildTls } from './tls.ts';

/** What a write makes of a host. */
export interface Built {
    /** A user whose password was sent has an empty hash here, until `passwords` are hashed. */
    readonly site: Site;
    readonly tags: readonly string[];
    readonly notes: string;
    readonly passwords: ReadonlyMap<string, string>;
}

/** What a host is built from, beside the body. */
export interface Ground {
    readonly id: number;
    /** The host as it is; null for a new one. */
    readonly before: HostRow | null;
    /** Password hashes by user name; a user without a password in the body keeps this one. */
    readonly hashes: ReadonlyMap<string, string>;
}

/** Fields that only hosts of these types have. */
const belongs: Readonly<Record<string, readonly SiteType[]>> = {
    upstream: ['proxy'],
    upstreams: ['proxy'],
    loadBalancing: ['proxy'],
    healthCheck: ['proxy'],
    timeouts: ['proxy', 'php'],
    locations: ['proxy', 'static', 'php'],
    redirect: ['redirect'],
    static: ['static'],
    php: ['php']
};

/** The fields of a host of which nothing was set. */
const blank: Omit<Site, 'id' | 'domain' | 'type'> = {
    aliases: [],
    enabled: true,
    maintenance: false,
    upstreams: [],
    ssl: false,
    sslMode: 'auto',
    certificateId: null,
    forceHttps: false,
    hsts: false,
    loadBalancing: null,
    healthCheck: null,
    locations: [],
    headers: { request: [], response: [] },
    access: { allow: [], deny: [], basicAuth: [], forwardAuth: null },
    cors: null,
    securityHeaders: false,
    compression: false,
    bodyLimitBytes: null,
    timeouts: null,
    errorPages: [],
    redirect: null,
    static: null,
    php: null,
    advanced: []
};

/** Builds a host. What is wrong with the body goes to `faults`. */
export function build(body: HostChange, ground: Ground, faults: Faults): Built {
    const { before } = ground;
    const type = (body.type === undefined ? before?.site.type : body.type) ?? 'proxy';
    refuseBrokenText(body, '', faults);
    refuseForeign(body, type, faults);
    const kept = keptFields(before, type);
    const passwords = new Map<string, string>();
    const site: Site = {
        ...kept,
        id: ground.id,
        type,
        domain:
            body.domain === undefined ? (before?.site.domain ?? '') : siteName(body.domain, 'domain', faults),
        aliases: merge(body.aliases, kept.aliases, [], (names) =>
            names.map((name, at) => siteName(name, `aliases.${at}`, faults))
        ),
        enabled: mergePlain(body.enabled, kept.enabled, true),
        maintenance: mergePlain(body.maintenance, kept.maintenance, false),
        upstreams: type === 'proxy' ? buildUpstreams(body, kept, faults) : [],
        ...buildTls(body, kept, before, faults),
        loadBalancing: merge(body.loadBalancing, kept.loadBalancing, null, (value) =>
            buildLoadBalancing(value, faults)
        ),
        healthCheck: merge(body.healthCheck, kept.healthCheck, null, (value) =>
            buildHealthCheck(value, faults)
        ),
        locations: merge(body.locations, kept.locations, [], (value) => buildLocations(value, faults)),
        headers: merge(body.headers, kept.headers, blank.headers, (value) => ({
            request: buildRequestOperations(value.request, kept.headers.request, faults),
            response: buildOperations(value.response, 'headers.response', faults)
        })),
        access: merge(body.access, kept.access, blank.access, (value) =>
            buildAccess(value, ground.hashes, passwords, faults)
        ),
        cors: merge(body.cors, kept.cors, null, (value) => buildCors(value, faults)),
        securityHeaders: mergePlain(body.securityHeaders, kept.securityHeaders, false),
        compression: mergePlain(body.compression, kept.compression, false),
        bodyLimitBytes: body.bodyLimitBytes === undefined ? kept.bodyLimitBytes : body.bodyLimitBytes,
        timeouts: merge(body.timeouts, kept.timeouts, null, (value) => ({
            connectSeconds: value.connectSeconds ?? null,
            readSeconds: value.readSeconds ?? null,
            writeSeconds: value.writeSeconds ?? null
        })),
        errorPages: merge(body.errorPages, kept.errorPages, [], (value) => buildErrorPages(value, faults)),
        redirect: merge(body.redirect, kept.redirect, null, (value) => buildRedirect(value, faults)),
        static: merge(body.static, kept.static, null, (value) => ({
            root: readFolder(value.root ?? '', 'static.root', faults),
            browse: value.browse ?? false,
            index: readIndexFiles(value.index ?? ['index.html'], 'static.index', faults),
            spaFallback: value.spaFallback ?? false
        })),
        php: merge(body.php, kept.php, null, (value) => ({
            root: readFolder(value.root ?? '', 'php.root', faults),
            ...(value.upstreams === undefined
                ? { fastcgi: fastcgiAddress(value.fastcgi ?? '', 'php.fastcgi', faults)?.text ?? '' }
                : { upstreams: buildWeighted(value.upstreams, 'php.upstreams', fastcgiAddress, faults) }),
            index: readIndexFiles(value.index ?? ['index.php'], 'php.index', faults)
        })),
        advanced: merge(body.advanced, kept.advanced, [], (value) => readAdvanced(value, faults))
    };
    checkWhole(site, typeof body.upstream === 'string', faults);
    return {
        site,
        tags: merge(body.tags, before?.tags ?? [], [], (value) => readTags(value, faults)),
        notes: body.notes === undefined ? (before?.notes ?? '') : (body.notes ?? ''),
        passwords
    };
}

function keptFields(before: HostRow | null, type: SiteType): Omit<Site, 'id' | 'domain' | 'type'> {
    if (before === null) {
        return blank;
    }
    const foreign = Object.entries(belongs)
        .filter(([field, types]) => field in blank && !types.includes(type))
        .map(([field]) => [field, blank[field as keyof typeof blank]] as const);
    return { ...before.site, ...Object.fromEntries(foreign) };
}

/** Refuses text that a database, a log or the engine would cut or change: NUL, and halves of a surrogate pair. */
function refuseBrokenText(value: unknown, path: string, faults: Faults): void {
    if (typeof value === 'string' && (value.includes('\u0000') || !value.isWellFormed())) {
        faults.add(path, `${path} has characters that are no text`);
    } else if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) {
            refuseBrokenText(inner, path === '' ? key : `${path}.${key}`, faults);
        }
    }
}

function refuseForeign(body: HostChange, type: SiteType, faults: Faults): void {
    for (const [field, types] of Object.entries(belongs)) {
        const value = body[field as keyof HostChange] as unknown;
        const empty = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
        if (!empty && !types.includes(type)) {
            faults.add(field, `${field} does not belong to a host of type ${type}`);
        }
    }
}

function readTags(list: readonly string[], faults: Faults): readonly string[] {
    list.forEach((tag, at) => {
        if (!/^[^\p{Cc}\u2028\u2029]+$/u.test(tag) || tag.trim() !== tag) {
            faults.add(`tags.${at}`, `tags.${at} must not have control characters, or spaces around it`);
        } else if (list.indexOf(tag) !== at) {
            faults.add(`tags.${at}`, `tags.${at} is there twice`);
        }
    });
    return list;
}

/** Checks the rules between fields. An upstream that was sent but refused counts as present: its fault is already known. */
function checkWhole(site: Site, sentUpstream: boolean, faults: Faults): void {
    const names = [site.domain, ...site.aliases];
    names.forEach((name, at) => {
        if (names.indexOf(name) !== at) {
            faults.add(`aliases.${at - 1}`, `aliases.${at - 1} names ${name} a second time`);
        }
    });
    if (site.type === 'proxy' && site.upstreams.length === 0 && !sentUpstream) {
        faults.add('upstream', 'upstream is required for a host of type proxy');
    }
    for (const type of ['redirect', 'static', 'php'] as const) {
        if (site.type === type && site[type] === null) {
            faults.add(type, `${type} is required for a host of type ${type}`);
        }
    }
    const schemes = new Set(
        site.upstreams.map(({ address }) => /^(https|h2c):/.exec(address)?.[1] ?? 'http')
    );
    if (schemes.size > 1) {
        faults.add(
            'upstreams',
            'upstreams must all speak the same way: all plain, all https:// or all h2c://'
        );
    }
    if (site.ssl && site.sslMode === 'auto' && names.some((name) => name.startsWith('*.'))) {
        faults.add(
            'sslMode',
            'sslMode auto cannot get a certificate for a wildcard name: use certificate with one from POST /api/certificates, or internal'
        );
    }
}
