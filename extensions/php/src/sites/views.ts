/** Sites as answers show them. */
import type { ServiceInfo, Value } from '@portico/sdk';

import type { siteSchema } from './creation/input.ts';
import type { Locks } from './locks.ts';
import { linkPath, serviceName, type Site } from './site.ts';

/** A site as it is shown. */
export type SiteView = Value<typeof siteSchema>;

/** What is being done to a site while it is switched. */
export const switchWork = 'switch';

/** Shows a site with the state of its master. */
export function siteView(site: Site, services: ReadonlyMap<string, ServiceInfo>, locks: Locks): SiteView {
    const info = services.get(serviceName(site.id, site.slot));
    const { id, version, name, domain, aliases, release, root, template, ssl, sslMode, extraPaths } = site;
    const message = messageOf(site, info);
    return {
        id,
        version,
        name,
        domain,
        aliases: [...aliases],
        release,
        runtime: 'fpm',
        root,
        template,
        ssl,
        sslMode,
        extraPaths: [...extraPaths],
        env: Object.fromEntries(site.envNames.map((each) => [each, { set: true as const }])),
        state: stateOf(site, info, locks),
        ...(message === null ? {} : { message }),
        user: site.account,
        folder: site.folder,
        socket: linkPath(site),
        ...(site.hostId === null ? {} : { hostId: site.hostId }),
        ...(site.database === null ? {} : { databaseName: site.database.name }),
        ...(info?.pid === null || info === undefined ? {} : { pid: info.pid })
    };
}

function stateOf(
    site: Site,
    info: ServiceInfo | undefined,
    locks: Locks
): 'running' | 'stopped' | 'failed' | 'switching' | 'creating' {
    if (site.phase === 'creating') {
        return 'creating';
    }
    if (locks.holder(site.id) === switchWork) {
        return 'switching';
    }
    return info?.state ?? 'failed';
}

function messageOf({ message, phase }: Site, info: ServiceInfo | undefined): string | null {
    if (phase === 'removing') {
        return 'It is being removed';
    }
    if (phase === 'ready' && info === undefined) {
        return 'It has no PHP-FPM: start it';
    }
    if (info?.state === 'failed') {
        const { lastExit } = info;
        return `PHP-FPM does not run${lastExit === null ? '' : `; it ended with ${lastExit.signal ?? lastExit.code}`}`;
    }
    return message;
}
