/** The upstreams of a proxy, how it balances load between them, and how it checks their health. */
import { type Json, list, record } from '../json.ts';
import { Foreign, keys, literal, secondsOf } from './reading.ts';

const policies = new Set(['round_robin', 'least_conn', 'ip_hash', 'first', 'random']);

/** The field `loadBalancing`; empty without one. @throws Foreign */
export function balancing(value: Json): Json {
    if (Object.keys(value).length === 0) {
        return {};
    }
    keys(value, ['selection_policy', 'retries', 'try_duration']);
    const selection = record(value['selection_policy']);
    keys(selection, ['policy']);
    const policy = selection['policy'] ?? 'random';
    const tries = secondsOf(value['try_duration'] ?? 0);
    if (!policies.has(String(policy)) || !Number.isInteger(tries)) {
        throw new Foreign(`it balances by ${String(policy)}`);
    }
    return {
        loadBalancing: { policy, key: null, retries: value['retries'] ?? 0, tryDurationSeconds: tries }
    };
}

/** The upstreams in the spelling of a host. @throws Foreign */
export function addresses(handler: Json): readonly string[] {
    const scheme = schemeOf(record(handler['transport']));
    const upstreams = list(handler['upstreams']).map(record);
    if (upstreams.length === 0) {
        throw new Foreign('its upstreams are found while it runs');
    }
    return upstreams.map((upstream) => {
        keys(upstream, ['dial']);
        const dial = literal(upstream['dial']);
        const socket = /^unix\/(\/.*)$/.exec(dial)?.[1];
        if (socket !== undefined) {
            if (scheme !== '') {
                throw new Foreign('it speaks TLS or HTTP/2 through a socket');
            }
            return `unix/${socket}`;
        }
        if (!/^[^\s/|]+:\d+$/.test(dial)) {
            throw new Foreign(`its upstream ${dial} is no host and port`);
        }
        return `${scheme}${dial}`;
    });
}

function schemeOf(transport: Json): string {
    keys(transport, ['protocol', 'tls', 'versions']);
    if ((transport['protocol'] ?? 'http') !== 'http') {
        throw new Foreign(`it speaks ${String(transport['protocol'])} with its upstreams`);
    }
    const versions = list(transport['versions']);
    if (transport['tls'] !== undefined) {
        if (Object.keys(record(transport['tls'])).length > 0 || versions.length > 0) {
            throw new Foreign('it has settings of its own for TLS to its upstreams');
        }
        return 'https://';
    }
    return versions.includes('h2c') ? 'h2c://' : '';
}

/** The field `healthCheck`; empty without one. Differences go to `note`. @throws Foreign */
export function healthCheck(value: Json, note: (message: string) => void): Json {
    keys(value, ['active', 'passive']);
    const active = value['active'] === undefined ? null : activeCheck(record(value['active']), note);
    const passive = passiveCheck(record(value['passive']), note);
    return active === null && passive === null
        ? {}
        : { healthCheck: { ...active, ...(passive === null ? {} : { passive }) } };
}

function activeCheck(active: Json, note: (message: string) => void): Json {
    keys(active, ['uri', 'path', 'interval', 'timeout', 'expect_status']);
    const path = literal(active['uri'] ?? active['path']);
    if (!/^\/[\x21\x22\x24-\x7e]*$/.test(path)) {
        throw new Foreign(`it asks ${path} for the health of its upstreams`);
    }
    const status = active['expect_status'] ?? 0;
    if (status === 0) {
        note('healthCheck: a status of 2xx is healthy; it was every status from 200 to 399');
    }
    return {
        path,
        intervalSeconds: wholeSeconds(active['interval'] ?? '30s', 3_600, 'intervalSeconds', note),
        timeoutSeconds: wholeSeconds(active['timeout'] ?? '5s', 300, 'timeoutSeconds', note),
        expectStatus: expectedStatus(status)
    };
}

function expectedStatus(status: unknown): number {
    if (status === 0) {
        return 2;
    }
    const isKnown = Number.isInteger(status) && Number(status) >= 1 && Number(status) <= 599;
    if (!isKnown || (Number(status) > 5 && Number(status) < 100)) {
        throw new Foreign(`it expects the status ${String(status)} of a healthy upstream`);
    }
    return Number(status);
}

/** Null when failures of real requests are not counted: without `fail_duration` they are forgotten at once. */
function passiveCheck(passive: Json, note: (message: string) => void): Json | null {
    keys(passive, ['fail_duration', 'max_fails']);
    if (secondsOf(passive['fail_duration'] ?? 0) === 0) {
        return null;
    }
    const maxFails = passive['max_fails'] ?? 1;
    if (!Number.isInteger(maxFails) || Number(maxFails) < 1 || Number(maxFails) > 1_000) {
        throw new Foreign(`it counts ${String(maxFails)} failures of an upstream`);
    }
    return {
        maxFails,
        failDurationSeconds: wholeSeconds(passive['fail_duration'], 3_600, 'failDurationSeconds', note)
    };
}

/** Rounds up to whole seconds, because hosts have no fractions. @throws Foreign for more than `most` */
function wholeSeconds(value: unknown, most: number, field: string, note: (message: string) => void): number {
    const exact = secondsOf(value);
    const whole = Math.max(1, Math.ceil(exact));
    if (whole > most) {
        throw new Foreign(`its health checks have a time of ${exact} s, and ${field} is at most ${most}`);
    }
    if (whole !== exact) {
        note(`healthCheck: ${field} is ${whole}; it was ${exact} s`);
    }
    return whole;
}
