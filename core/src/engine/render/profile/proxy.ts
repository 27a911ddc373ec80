/** `reverse_proxy` handlers. */
import type { LoadBalancing, Upstream } from '../../site.ts';
import type { CompileContext, Part } from '../compile/context.ts';
import { literal } from '../placeholder.ts';
import { headerOperations } from './headers.ts';
import type { Behaviour } from './profile.ts';
import { withoutForged } from './request.ts';
import { type UpstreamAddress, upstreamAddress } from './upstream.ts';

/** The variable that holds the last part of the table entry while a request is served. */
export const tableDial = '{http.regexp.portico_entry.3}';

/** Under `weighted` before 2.8, an upstream is listed several times, by its weight; the list has at most this many entries. */
const mostShares = 100;

/**
 * For how long a failed upstream is skipped while others are tried. Without it, a policy that always chooses the same one
 * would try that one again. Longer than ten tries at the engine's own interval of a quarter of a second.
 */
const passedOver = '3s';

/** For how long the streams of an old configuration live on, if the engine can keep them. */
const streamCloseDelay = '10m';

/** The site's own proxy. */
export const siteProxy = (behaviour: Behaviour, context: CompileContext): Part => {
    if (behaviour.tableScheme !== null) {
        return proxy(
            behaviour,
            context,
            [{ dial: tableDial }],
            behaviour.tableScheme,
            balancing(behaviour.loadBalancing, 1)
        );
    }

    const [first] = behaviour.upstreams;
    const scheme = first === undefined ? 'http' : upstreamAddress(first.address).scheme;
    const { upstreams, ...selection } = spread(behaviour.upstreams, behaviour.loadBalancing, context);
    return { ...proxy(behaviour, context, upstreams, scheme, selection), ...healthChecks(behaviour) };
};

/** The fields `upstreams` and, if there is a choice, `load_balancing` of a handler that sends to all of these. */
export const spread = (
    upstreams: readonly Upstream[],
    settings: LoadBalancing | null,
    { features }: CompileContext
): { readonly upstreams: readonly Part[] } & Part => {
    const weighted = settings?.policy === 'weighted';
    const native = weighted && features.weightedRoundRobin;
    const order = weighted && !native ? shares(upstreams) : upstreams.map((_, index) => index);
    const dials = upstreams.map(({ address }) => literal(upstreamAddress(address).dial));
    return {
        upstreams: order.map((index) => ({ dial: dials[index] })),
        ...balancing(settings, order.length, native ? upstreams.map(({ weight }) => weight) : null)
    };
};

/** The proxy of one location. */
export const locationProxy = (address: string, behaviour: Behaviour, context: CompileContext): Part => {
    const upstream = upstreamAddress(address);
    return proxy(behaviour, context, [{ dial: literal(upstream.dial) }], upstream.scheme, {});
};

/**
 * Connections to upstreams that wait for the next request. They end before the five seconds are over after which Node, Apache and others close one
 * themselves: a request that meets that end is lost. And a server that gets no more requests is soon without connections. The engine's own 32 for
 * each upstream are too few where 64 visitors ask at once: half of their requests would open a connection, which costs a sixth of the engine's time.
 */
const keepAlive: Part = { probe_interval: '30s', max_idle_conns_per_host: 128, idle_timeout: '4s' };

/** Set on every proxy: otherwise the engine keeps each old configuration in memory as long as an idle connection lives. */
export const httpTransport = (scheme: UpstreamAddress['scheme'], timeouts: Behaviour['timeouts']): Part => ({
    protocol: 'http',
    ...(scheme === 'http' && { keep_alive: keepAlive }),
    ...(scheme === 'https' && { tls: {} }),
    ...(scheme === 'h2c' && { versions: ['h2c', '2'] }),
    ...timeoutFields(timeouts)
});

/** Time limits for connecting, for reading the next bytes of the upstream, and for writing to it. */
export const timeoutFields = (timeouts: Behaviour['timeouts']): Part => ({
    ...(timeouts?.connectSeconds != null && { dial_timeout: `${timeouts.connectSeconds}s` }),
    ...(timeouts?.readSeconds != null && { read_timeout: `${timeouts.readSeconds}s` }),
    ...(timeouts?.writeSeconds != null && { write_timeout: `${timeouts.writeSeconds}s` })
});

/** Turns an upstream's answer into an error if the site has an error page for it, so that pages are served in one place. */
export const errorResponses = (behaviour: Behaviour): Part =>
    behaviour.errorPages.length === 0
        ? {}
        : {
              handle_response: behaviour.errorPages.map((page) => ({
                  match: { status_code: [page.status] },
                  routes: [
                      {
                          handle: [
                              {
                                  handler: 'copy_response_headers',
                                  include: ['Allow', 'Retry-After', 'Set-Cookie', 'Vary', 'Www-Authenticate']
                              },
                              { handler: 'error', status_code: page.status }
                          ]
                      }
                  ]
              }))
          };

const proxy = (
    behaviour: Behaviour,
    context: CompileContext,
    upstreams: readonly Part[],
    scheme: UpstreamAddress['scheme'],
    selection: Part
): Part => {
    const request = requestOperations(behaviour, scheme, context);
    return {
        handler: 'reverse_proxy',
        upstreams,
        transport: httpTransport(scheme, behaviour.timeouts),
        ...selection,
        headers: { request },
        ...(context.features.streamCloseDelay && { stream_close_delay: streamCloseDelay }),
        ...errorResponses(behaviour)
    };
};

const requestOperations = (
    behaviour: Behaviour,
    scheme: UpstreamAddress['scheme'],
    context: CompileContext
): Part => {
    const operations = withoutForged(headerOperations(behaviour.headers.request));
    if (
        scheme !== 'https' ||
        !context.features.rewritesHostForTls ||
        behaviour.headers.request.some(({ name }) => name.toLowerCase() === 'host')
    ) {
        return operations;
    }

    const set = operations['set'] as Record<string, string[]>;
    return { ...operations, set: { ...set, Host: ['{http.request.hostport}'] } };
};

const balancing = (
    settings: LoadBalancing | null,
    count: number,
    weights: readonly number[] | null = null
): Part => {
    if (settings === null) {
        // The engine's default is random, but a user who lists upstreams expects round-robin.
        return count > 1 ? { load_balancing: { selection_policy: { policy: 'round_robin' } } } : {};
    }

    return {
        load_balancing: {
            ...(count > 1 && { selection_policy: selectionPolicy(settings, weights) }),
            ...(settings.retries > 0 && { retries: settings.retries }),
            ...(settings.tryDurationSeconds > 0 && { try_duration: `${settings.tryDurationSeconds}s` })
        }
    };
};

const selectionPolicy = (settings: LoadBalancing, weights: readonly number[] | null): Part => {
    switch (settings.policy) {
        case 'weighted':
            return weights === null ? { policy: 'round_robin' } : { policy: 'weighted_round_robin', weights };
        case 'header':
            return { policy: 'header', field: settings.key ?? 'X-Forwarded-For' };
        case 'cookie':
            return { policy: 'cookie', name: settings.key ?? 'lb' };
        default:
            return { policy: settings.policy };
    }
};

const healthChecks = ({ healthCheck, loadBalancing, upstreams }: Behaviour): Part => {
    const tries =
        upstreams.length > 1 &&
        loadBalancing !== null &&
        (loadBalancing.retries > 0 || loadBalancing.tryDurationSeconds > 0);
    const passive = healthCheck?.passive ?? null;
    const active = healthCheck?.path ?? null;
    if (active === null && passive === null && !tries) {
        return {};
    }

    return {
        health_checks: {
            ...(healthCheck !== null &&
                active !== null && {
                    active: {
                        uri: active,
                        interval: `${healthCheck.intervalSeconds}s`,
                        timeout: `${healthCheck.timeoutSeconds}s`,
                        expect_status: healthCheck.expectStatus
                    }
                }),
            ...(passive === null
                ? tries && { passive: { max_fails: 1, fail_duration: passedOver } }
                : {
                      passive: {
                          max_fails: passive.maxFails,
                          fail_duration: `${passive.failDurationSeconds}s`
                      }
                  })
        }
    };
};

/**
 * The round-robin order, as indexes, that spreads the shares of the upstreams evenly: the next one is always the one that is furthest behind.
 * Weights are divided by their greatest common divisor; if the round would still be longer than a hundred, they are scaled down, each to at least one.
 */
export const shares = (upstreams: readonly Upstream[]): readonly number[] => {
    const divisor = upstreams.reduce((all, { weight }) => greatestCommonDivisor(all, weight), 0);
    let weights = upstreams.map(({ weight }) => weight / divisor);
    const total = sum(weights);
    if (total > mostShares) {
        weights = weights.map((weight) => Math.max(1, Math.round((weight * mostShares) / total)));
    }

    const rounds = sum(weights);
    const credit = weights.map(() => 0);
    return Array.from({ length: rounds }, () => {
        let best = 0;
        weights.forEach((weight, index) => {
            credit[index] = (credit[index] ?? 0) + weight;
            if ((credit[index] ?? 0) > (credit[best] ?? 0)) {
                best = index;
            }
        });
        credit[best] = (credit[best] ?? 0) - rounds;
        return best;
    });
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const greatestCommonDivisor = (a: number, b: number): number =>
    b === 0 ? a : greatestCommonDivisor(b, a % b);
