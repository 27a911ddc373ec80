/**
 * From what was sent, and what the host is, to what it becomes: merging one level deep, one spelling for everything, and the rules that
 * hold between fields. Pure; whatever needs the machine or the other hosts is in `safety.ts`.
 */
import type { HostRow } from '../../../engine/change.ts';
import type { Site, SiteType } from '../../../engine/site.ts';
import { bounds, defaultKeys, type HostChange } from '../schema.ts';
import { buildAccess } from './access.ts';
import {
    fastcgiAddress,
    type Faults,
    headerName,
    isHeaderValue,
    isPlainPath,
    isToken,
    siteName,
    upstreamAddress,
    webUrl
} from './normalise.ts';

/** What a write makes of a host. */
export interface Built {
    /** A user whose password was sent has an empty hash here, until `passwords` are hashed. */
    readonly site: Site;
    readonly tags: readonly string[];
    readonly notes: string;
    readonly passwords: ReadonlyMap<string, string>;
}

/** What is built upon. */
export interface Ground {
    readonly id: number;
    /** The host as it is; null for a new one. */
    readonly before: HostRow | null;
    /** Hashes that a user without password keeps. */
    readonly hashes: ReadonlyMap<string, string>;
}

/** Fields that only some types have. */
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
        enabled: plain(body.enabled, kept.enabled, true),
        maintenance: plain(body.maintenance, kept.maintenance, false),
        upstreams: type === 'proxy' ? upstreams(body, kept, faults) : [],
        ...secure(body, kept, before, faults),
        loadBalancing: merge(body.loadBalancing, kept.loadBalancing, null, (value) =>
            loadBalancing(value, faults)
        ),
        healthCheck: merge(body.healthCheck, kept.healthCheck, null, (value) => healthCheck(value, faults)),
        locations: merge(body.locations, kept.locations, [], (value) => locations(value, faults)),
        headers: merge(body.headers, kept.headers, blank.headers, (value) => ({
            request: operations(value.request, 'headers.request', faults),
            response: operations(value.response, 'headers.response', faults)
        })),
        access: merge(body.access, kept.access, blank.access, (value) =>
            buildAccess(value, ground.hashes, passwords, faults)
        ),
        cors: merge(body.cors, kept.cors, null, (value) => cors(value, faults)),
        securityHeaders: plain(body.securityHeaders, kept.securityHeaders, false),
        compression: plain(body.compression, kept.compression, false),
        bodyLimitBytes: body.bodyLimitBytes === undefined ? kept.bodyLimitBytes : body.bodyLimitBytes,
        timeouts: merge(body.timeouts, kept.timeouts, null, (value) => ({
            connectSeconds: value.connectSeconds ?? null,
            readSeconds: value.readSeconds ?? null,
            writeSeconds: value.writeSeconds ?? null
        })),
        errorPages: merge(body.errorPages, kept.errorPages, [], (value) => errorPages(value, faults)),
        redirect: merge(body.redirect, kept.redirect, null, (value) => redirect(value, faults)),
        static: merge(body.static, kept.static, null, (value) => ({
            root: folder(value.root ?? '', 'static.root', faults),
            browse: value.browse ?? false,
            index: indexFiles(value.index ?? ['index.html'], 'static.index', faults),
            spaFallback: value.spaFallback ?? false
        })),
        php: merge(body.php, kept.php, null, (value) => ({
            root: folder(value.root ?? '', 'php.root', faults),
            fastcgi: fastcgiAddress(value.fastcgi ?? '', 'php.fastcgi', faults)?.text ?? '',
            index: indexFiles(value.index ?? ['index.php'], 'php.index', faults)
        })),
        advanced: merge(body.advanced, kept.advanced, [], (value) => advanced(value, faults))
    };
    checkWhole(site, typeof body.upstream === 'string', faults);
    return {
        site,
        tags: merge(body.tags, before?.tags ?? [], [], (value) => tags(value, faults)),
        notes: body.notes === undefined ? (before?.notes ?? '') : (body.notes ?? ''),
        passwords
    };
}

/** One level deep: not sent keeps, null clears, anything else replaces whole. */
function merge<T, R>(sent: T | null | undefined, kept: R, cleared: R, normalise: (value: T) => R): R {
    return sent === undefined ? kept : sent === null ? cleared : normalise(sent);
}

function plain<T>(sent: T | null | undefined, kept: T, cleared: T): T {
    return merge(sent, kept, cleared, (value) => value);
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

/** Text that a database, a log or the engine would cut or change: NUL, and halves of a surrogate pair. */
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

function upstreams(body: HostChange, kept: Pick<Site, 'upstreams'>, faults: Faults): Site['upstreams'] {
    const single =
        typeof body.upstream === 'string' ? upstreamAddress(body.upstream, 'upstream', faults) : null;
    if (
        body.upstreams === undefined ||
        body.upstreams === null ||
        (body.upstreams.length === 0 && single !== null)
    ) {
        if (single !== null) {
            return [{ address: single.text, weight: 1 }];
        }
        return body.upstreams !== undefined || body.upstream === null ? [] : kept.upstreams;
    }
    const seen = new Set<string>();
    const list = body.upstreams.map(({ address, weight }, at) => {
        const parsed = upstreamAddress(address ?? '', `upstreams.${at}.address`, faults)?.text ?? '';
        if (parsed !== '' && seen.has(parsed)) {
            faults.add(`upstreams.${at}.address`, `upstreams.${at}.address is there twice`);
        }
        seen.add(parsed);
        return { address: parsed, weight: weight ?? 1 };
    });
    if (single !== null && list[0]?.address !== single.text) {
        faults.add(
            'upstream',
            'upstream and the first of upstreams differ: send one of them, or the same in both'
        );
    }
    return list;
}

type Secure = Pick<Site, 'ssl' | 'sslMode' | 'certificateId' | 'forceHttps' | 'hsts'>;

function secure(body: HostChange, kept: Secure, before: HostRow | null, faults: Faults): Secure {
    const ssl = plain(body.ssl, kept.ssl, false);
    const switched = before === null || ssl !== before.site.ssl;
    const sslMode = plain(body.sslMode, kept.sslMode, 'auto');
    const certificateId =
        body.certificateId === undefined
            ? sslMode === 'certificate'
                ? kept.certificateId
                : null
            : body.certificateId;
    const forceHttps = plain(body.forceHttps, switched ? ssl : kept.forceHttps, ssl);
    const hsts = plain(body.hsts, ssl && kept.hsts, false);
    if (certificateId !== null && sslMode !== 'certificate') {
        faults.add('certificateId', 'certificateId needs sslMode certificate');
    }
    if (certificateId === null && sslMode === 'certificate') {
        faults.add('certificateId', 'certificateId is required with sslMode certificate');
    }
    if (!ssl && forceHttps) {
        faults.add('forceHttps', 'forceHttps needs ssl');
    }
    if (!ssl && hsts) {
        faults.add('hsts', 'hsts needs ssl');
    }
    return { ssl, sslMode, certificateId, forceHttps, hsts };
}

function loadBalancing(
    value: NonNullable<HostChange['loadBalancing']>,
    faults: Faults
): Site['loadBalancing'] {
    const policy = value.policy ?? 'round_robin';
    const keyed = policy === 'header' || policy === 'cookie';
    const key = value.key ?? (keyed ? defaultKeys[policy] : null);
    if (key !== null && !keyed) {
        faults.add('loadBalancing.key', 'loadBalancing.key belongs to the policies header and cookie only');
    } else if (key !== null && !isToken(key)) {
        faults.add('loadBalancing.key', `loadBalancing.key is not the name of a ${policy}`);
    }
    return { policy, key, retries: value.retries ?? 0, tryDurationSeconds: value.tryDurationSeconds ?? 0 };
}

function healthCheck(value: NonNullable<HostChange['healthCheck']>, faults: Faults): Site['healthCheck'] {
    const path = value.path ?? null;
    const expectStatus = value.expectStatus ?? 2;
    const passive =
        value.passive === undefined || value.passive === null
            ? null
            : {
                  maxFails: value.passive.maxFails ?? 1,
                  failDurationSeconds: value.passive.failDurationSeconds ?? 30
              };
    if (path !== null && !/^\/[\x21\x22\x24-\x7e]*$/.test(path)) {
        faults.add(
            'healthCheck.path',
            'healthCheck.path must begin with / and have visible ASCII characters without #'
        );
    }
    if (expectStatus > 5 && expectStatus < 100) {
        faults.add(
            'healthCheck.expectStatus',
            'healthCheck.expectStatus must be 100 to 599, or 1 to 5 for a class'
        );
    }
    if (path === null && passive === null) {
        faults.add('healthCheck', 'healthCheck needs a path, passive, or both');
    }
    return {
        path,
        intervalSeconds: value.intervalSeconds ?? 30,
        timeoutSeconds: value.timeoutSeconds ?? 5,
        expectStatus,
        passive
    };
}

function locations(list: NonNullable<HostChange['locations']>, faults: Faults): Site['locations'] {
    const seen = new Set<string>();
    return list.map((location, at) => {
        const typed = location.path ?? '';
        const path = typed.length > 1 && typed.endsWith('/') ? typed.slice(0, -1) : typed;
        if (path === '/' || !isPlainPath(path) || !/^[\x21-\x7e]+$/.test(path) || /[*?#%\\]/.test(path)) {
            faults.add(
                `locations.${at}.path`,
                `locations.${at}.path must be a path such as /api, of visible ASCII characters without any of *?#%\\`
            );
        } else if (seen.has(path)) {
            faults.add(`locations.${at}.path`, `locations.${at}.path is there twice`);
        }
        seen.add(path);
        return {
            path,
            upstream:
                upstreamAddress(location.upstream ?? '', `locations.${at}.upstream`, faults)?.text ?? '',
            stripPrefix: location.stripPrefix ?? false
        };
    });
}

type Operations = NonNullable<NonNullable<HostChange['headers']>['request']>;

function operations(list: Operations | undefined, path: string, faults: Faults): Site['headers']['request'] {
    return (list ?? []).map((operation, at) => {
        const { op = 'set', name = '', value = '' } = operation;
        headerName(name, `${path}.${at}.name`, faults);
        if (!isHeaderValue(value)) {
            faults.add(`${path}.${at}.value`, `${path}.${at}.value must not have control characters`);
        }
        if (op === 'delete' && value !== '') {
            faults.add(`${path}.${at}.value`, `${path}.${at}.value must be empty for delete`);
        }
        if (
            name.toLowerCase() === 'host' &&
            (path === 'headers.response' || op !== 'set' || !/^[\x21-\x7e]+$/.test(value))
        ) {
            faults.add(
                `${path}.${at}`,
                `${path}.${at}: Host can only be set, on requests, to a name with or without a port`
            );
        }
        return { op, name, value };
    });
}

function cors(value: NonNullable<HostChange['cors']>, faults: Faults): Site['cors'] {
    const origins = value.origins ?? [];
    origins.forEach((origin, at) => {
        if (origin === '*' ? origins.length > 1 : URL.parse(origin)?.origin !== origin || origin === 'null') {
            faults.add(
                `cors.origins.${at}`,
                `cors.origins.${at} must be an origin such as https://app.example.com, or * alone`
            );
        }
    });
    const credentials = value.credentials ?? false;
    if (credentials && origins.includes('*')) {
        faults.add('cors.credentials', 'cors.credentials cannot be combined with the origin *');
    }
    const methods = value.methods ?? ['GET', 'HEAD', 'POST'];
    methods.forEach((method, at) => {
        if (!/^[A-Z]{1,32}$/.test(method)) {
            faults.add(`cors.methods.${at}`, `cors.methods.${at} must be a method in capitals`);
        }
    });
    const headers = value.headers ?? [];
    headers.forEach((header, at) => {
        if (!isToken(header)) {
            faults.add(`cors.headers.${at}`, `cors.headers.${at} is not a header's name`);
        }
    });
    return { origins, methods, headers, credentials, maxAgeSeconds: value.maxAgeSeconds ?? 600 };
}

function errorPages(list: NonNullable<HostChange['errorPages']>, faults: Faults): Site['errorPages'] {
    const seen = new Set<number>();
    return list.map(({ status = 0, body = '' }, at) => {
        if (seen.has(status)) {
            faults.add(`errorPages.${at}.status`, `errorPages.${at}.status is there twice`);
        }
        seen.add(status);
        return { status, body };
    });
}

function redirect(value: NonNullable<HostChange['redirect']>, faults: Faults): Site['redirect'] {
    const to = value.to ?? '';
    const keepPath = value.keepPath ?? true;
    const url = webUrl(to, 'redirect.to', faults);
    if (url !== null && keepPath && to.includes('#')) {
        faults.add('redirect.to', 'redirect.to must have no fragment when keepPath appends to it');
    }
    return {
        to: url === null || /^[\x21-\x7e]+$/.test(to) ? to : url.href,
        code: value.code ?? 308,
        keepPath
    };
}

function folder(typed: string, path: string, faults: Faults): string {
    const root = typed.length > 1 && typed.endsWith('/') ? typed.slice(0, -1) : typed;
    if (!isPlainPath(root)) {
        faults.add(path, `${path} must be an absolute path without "..", empty parts or control characters`);
    }
    return root;
}

function indexFiles(list: readonly string[], path: string, faults: Faults): readonly string[] {
    list.forEach((name, at) => {
        if (!isPlainPath(`/${name}`) || name === '') {
            faults.add(`${path}.${at}`, `${path}.${at} must be a file's name`);
        }
    });
    return list;
}

function advanced(list: NonNullable<HostChange['advanced']>, faults: Faults): Site['advanced'] {
    list.forEach((handler, at) => {
        if (typeof handler['handler'] !== 'string' || handler['handler'] === '') {
            faults.add(
                `advanced.${at}.handler`,
                `advanced.${at}.handler is required: the name of a handler of the engine`
            );
        }
    });
    if (Buffer.byteLength(JSON.stringify(list)) > bounds.advancedBytes) {
        faults.add('advanced', `advanced is larger than ${bounds.advancedBytes} bytes`);
    }
    return list as Site['advanced'];
}

function tags(list: readonly string[], faults: Faults): readonly string[] {
    list.forEach((tag, at) => {
        if (!/^[^\p{Cc}\u2028\u2029]+$/u.test(tag) || tag.trim() !== tag) {
            faults.add(`tags.${at}`, `tags.${at} must not have control characters, or spaces around it`);
        } else if (list.indexOf(tag) !== at) {
            faults.add(`tags.${at}`, `tags.${at} is there twice`);
        }
    });
    return list;
}

/** Rules between fields, on the host as it would be. An upstream that was sent is there, however wrong it is. */
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
