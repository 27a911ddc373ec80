/** The upstreams of a proxy: from what was sent to what is stored. */
import type { Site } from '../../../engine/site.ts';
import type { HostChange } from '../schema/bodies.ts';
import { defaultKeys } from '../schema/parts.ts';
import { type Faults, isPlainPath, isToken, upstreamAddress } from './normalise.ts';

/** The upstreams of a proxy. `upstream` alone replaces the list; beside `upstreams` it must be its first address. */
export function buildUpstreams(
    body: HostChange,
    kept: Pick<Site, 'upstreams'>,
    faults: Faults
): Site['upstreams'] {
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
    const list = buildWeighted(body.upstreams, 'upstreams', upstreamAddress, faults);
    if (single !== null && list[0]?.address !== single.text) {
        faults.add(
            'upstream',
            'upstream and the first of upstreams differ: send one of them, or the same in both'
        );
    }
    return list;
}

/** Addresses with their weights, each address once. */
export function buildWeighted(
    list: NonNullable<HostChange['upstreams']>,
    path: string,
    read: typeof upstreamAddress,
    faults: Faults
): Site['upstreams'] {
    const seen = new Set<string>();
    return list.map(({ address, weight }, at) => {
        const own = `${path}.${at}.address`;
        const parsed = read(address ?? '', own, faults)?.text ?? '';
        if (parsed !== '' && seen.has(parsed)) {
            faults.add(own, `${own} is there twice`);
        }
        seen.add(parsed);
        return { address: parsed, weight: weight ?? 1 };
    });
}

/** How an upstream is chosen. */
export function buildLoadBalancing(
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

/** The active and passive health checks of upstreams. */
export function buildHealthCheck(
    value: NonNullable<HostChange['healthCheck']>,
    faults: Faults
): Site['healthCheck'] {
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

/** The paths that are proxied elsewhere. */
export function buildLocations(
    list: NonNullable<HostChange['locations']>,
    faults: Faults
): Site['locations'] {
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
