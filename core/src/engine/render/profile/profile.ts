import { hash } from 'node:crypto';

import { canonicalize } from '@portico/sdk';

import { fitsEntry } from '../../files/table/entry.ts';
import type { PhpContent, Site } from '../../site.ts';
import { parseUpstream } from './upstream.ts';

/** A site's behaviour: the site without its names and state, with only the fields that its type has. */
export type Behaviour = Omit<
    Site,
    'id' | 'domain' | 'aliases' | 'enabled' | 'maintenance' | 'ssl' | 'sslMode' | 'certificateId'
> & {
    /** The scheme of the one upstream whose address is in the table; null: `upstreams` has them all. */
    readonly tableScheme: 'http' | 'https' | 'h2c' | null;
};

/** The behaviour that sites have in common. Ten thousand sites of one profile share one chain of handlers. */
export interface Profile {
    /** 16 hexadecimal digits of the SHA-256 of the behaviour. */
    readonly id: string;
    readonly behaviour: Behaviour;
}

/** The behaviour of a site, and the address that goes into the table. Pure. */
export const behaviourOf = (site: Site): { readonly behaviour: Behaviour; readonly dial: string | null } => {
    const upstreams = site.type === 'proxy' ? site.upstreams : [];
    const table = tableUpstream(site);
    const balanced =
        upstreams.length > 1 ||
        (site.loadBalancing !== null &&
            (site.loadBalancing.retries > 0 || site.loadBalancing.tryDurationSeconds > 0));
    return {
        dial: table?.dial ?? null,
        // The order is fixed, because the id is a hash of the text.
        behaviour: {
            type: site.type,
            forceHttps: site.ssl && site.forceHttps,
            hsts: site.ssl && site.hsts,
            tableScheme: table?.scheme ?? null,
            upstreams: table === null ? upstreams.map(({ address, weight }) => ({ address, weight })) : [],
            loadBalancing:
                site.type === 'proxy' && balanced && site.loadBalancing !== null
                    ? ordered(site.loadBalancing, ['policy', 'key', 'retries', 'tryDurationSeconds'])
                    : null,
            healthCheck:
                site.type === 'proxy' && site.healthCheck !== null
                    ? ordered(
                          {
                              ...site.healthCheck,
                              passive:
                                  site.healthCheck.passive &&
                                  ordered(site.healthCheck.passive, ['maxFails', 'failDurationSeconds'])
                          },
                          ['path', 'intervalSeconds', 'timeoutSeconds', 'expectStatus', 'passive']
                      )
                    : null,
            locations: site.locations.map((location) =>
                ordered(location, ['path', 'upstream', 'stripPrefix'])
            ),
            headers: {
                request: site.headers.request.map((operation) => ordered(operation, ['op', 'name', 'value'])),
                response: site.headers.response.map((operation) =>
                    ordered(operation, ['op', 'name', 'value'])
                )
            },
            access: {
                allow: site.access.allow,
                deny: site.access.deny,
                basicAuth: site.access.basicAuth.map((account) => ordered(account, ['username', 'hash'])),
                forwardAuth:
                    site.access.forwardAuth && ordered(site.access.forwardAuth, ['url', 'copyHeaders'])
            },
            cors:
                site.cors &&
                ordered(site.cors, ['origins', 'methods', 'headers', 'credentials', 'maxAgeSeconds']),
            securityHeaders: site.securityHeaders,
            compression: site.compression,
            bodyLimitBytes: site.bodyLimitBytes,
            timeouts:
                site.timeouts && ordered(site.timeouts, ['connectSeconds', 'readSeconds', 'writeSeconds']),
            errorPages: site.errorPages.map((page) => ordered(page, ['status', 'body'])),
            redirect:
                site.type === 'redirect' && site.redirect !== null
                    ? ordered(site.redirect, ['to', 'code', 'keepPath'])
                    : null,
            static:
                site.type === 'static' && site.static !== null
                    ? ordered(site.static, ['root', 'browse', 'index', 'spaFallback'])
                    : null,
            php: site.type === 'php' && site.php !== null ? phpContent(site.php) : null,
            advanced: site.advanced
        }
    };
};

const phpContent = ({ upstreams, ...php }: PhpContent): PhpContent =>
    ordered(
        {
            ...php,
            ...(upstreams && { upstreams: upstreams.map((each) => ordered(each, ['address', 'weight'])) })
        },
        ['root', 'fastcgi', 'upstreams', 'index']
    );

/** Short, the same on every machine, and practically unique among all profiles of a panel. */
export const profileId = (behaviour: Behaviour): string => {
    const text =
        behaviour.advanced.length === 0
            ? JSON.stringify(behaviour)
            : JSON.stringify({ ...behaviour, advanced: canonicalize(behaviour.advanced) });
    return hash('sha256', text).slice(0, 16);
};

/** The upstream that the table holds: a single one, over TCP, without health checks; null otherwise. */
const tableUpstream = (
    site: Site
): { readonly scheme: 'http' | 'https' | 'h2c'; readonly dial: string } | null => {
    const only = site.type === 'proxy' && site.upstreams.length === 1 ? site.upstreams[0] : undefined;
    const watched =
        site.healthCheck !== null && (site.healthCheck.path !== null || site.healthCheck.passive !== null);
    const parsed = only === undefined || watched ? null : parseUpstream(only.address);
    return parsed === null || parsed.unix || !fitsEntry(parsed.dial) ? null : parsed;
};

const ordered = <T extends object, K extends keyof T>(value: T, keys: readonly K[]): Pick<T, K> => {
    const result = {} as Pick<T, K>;
    for (const key of keys) {
        result[key] = value[key];
    }

    return result;
};
