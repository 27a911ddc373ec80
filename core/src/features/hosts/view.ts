/** Shows a host as the API answers it: everything that was set, but never a password, its hash, or a header's value that is a credential. */
import type { HostRow, HostState } from '../../engine/change.ts';
import type { PhpContent } from '../../engine/site.ts';
import { withoutValues } from '../../platform/header-secrets.ts';
import type { HostView } from './schema/view.ts';

/** The part of a view that is stored. `state` and `stateMessage` depend on the engine and are added later. */
export function storedView(row: HostRow): Omit<HostView, 'state' | 'stateMessage'> {
    const { site } = row;
    return {
        id: site.id,
        domain: site.domain,
        aliases: [...site.aliases],
        type: site.type,
        enabled: site.enabled,
        maintenance: site.maintenance,
        upstream: site.upstreams[0]?.address ?? null,
        upstreams: site.upstreams.map(({ address, weight }) => ({ address, weight })),
        ssl: site.ssl,
        sslMode: site.sslMode,
        certificateId: site.certificateId,
        forceHttps: site.forceHttps,
        hsts: site.hsts,
        loadBalancing: site.loadBalancing,
        healthCheck: site.healthCheck,
        locations: [...site.locations],
        headers: { request: withoutValues(site.headers.request), response: [...site.headers.response] },
        access: {
            allow: [...site.access.allow],
            deny: [...site.access.deny],
            basicAuth: site.access.basicAuth.map(({ username }) => ({ username })),
            forwardAuth:
                site.access.forwardAuth === null
                    ? null
                    : {
                          url: site.access.forwardAuth.url,
                          copyHeaders: [...site.access.forwardAuth.copyHeaders]
                      }
        },
        cors:
            site.cors === null
                ? null
                : {
                      ...site.cors,
                      origins: [...site.cors.origins],
                      methods: [...site.cors.methods],
                      headers: [...site.cors.headers]
                  },
        securityHeaders: site.securityHeaders,
        compression: site.compression,
        bodyLimitBytes: site.bodyLimitBytes,
        timeouts: site.timeouts,
        errorPages: [...site.errorPages],
        redirect: site.redirect,
        static: site.static === null ? null : { ...site.static, index: [...site.static.index] },
        php: site.php === null ? null : phpView(site.php),
        advanced: [...site.advanced],
        tags: [...row.tags],
        notes: row.notes,
        owner: row.owner,
        version: row.version,
        createdAt: row.createdAt.toISOString(),
        updatedAt: row.updatedAt.toISOString()
    };
}

function phpView({ root, fastcgi, upstreams, index }: PhpContent): HostView['php'] {
    return {
        root,
        ...(fastcgi !== undefined && { fastcgi }),
        ...(upstreams !== undefined && { upstreams: [...upstreams] }),
        index: [...index]
    };
}

/** The view of a host. */
export function viewOf(row: HostRow, state: HostState): HostView {
    return { ...storedView(row), state: state.state, stateMessage: state.message };
}

/** The JSON of a host, from its stored part and its state. */
export function viewText(document: string, state: HostState): string {
    return `${document.slice(0, -1)},"state":"${state.state}","stateMessage":${JSON.stringify(state.message)}}`;
}
