/** One line of the access log. */
import { permissionPath } from '../render/compile/dispatch.ts';

/** A request as the engine recorded it. */
export interface Visit {
    /** When the answer was complete, in milliseconds since 1970. */
    readonly at: number;
    /** The host that was asked for, in lower case and without its port. */
    readonly name: string;
    readonly method: string;
    readonly path: string;
    readonly status: number;
    readonly bytes: number;
    readonly ms: number;
    readonly ip: string;
    readonly agent: string | null;
}

const longestPath = 2048;
const longestAgent = 512;

interface Line {
    readonly ts?: unknown;
    readonly duration?: unknown;
    readonly size?: unknown;
    readonly status?: unknown;
    readonly request?: {
        readonly remote_ip?: unknown;
        readonly method?: unknown;
        readonly host?: unknown;
        readonly uri?: unknown;
        readonly headers?: { readonly 'User-Agent'?: readonly unknown[] };
    };
}

const none: Line = {};

/** Reads a line as Caddy writes it (`http.log.access`, format `json`). @returns null for a line that is none */
export function parseVisit(line: string): Visit | null {
    let entry: Line | null;
    try {
        entry = JSON.parse(line) as Line | null;
    } catch {
        return null; // the engine was killed while it wrote, or the disk was full
    }
    const { ts, duration, size, status, request } = entry ?? none;
    const { remote_ip: ip, method, host, uri, headers } = request ?? {};
    if (
        typeof ts !== 'number' ||
        typeof duration !== 'number' ||
        typeof size !== 'number' ||
        typeof status !== 'number' ||
        typeof ip !== 'string' ||
        typeof method !== 'string' ||
        typeof host !== 'string' ||
        typeof uri !== 'string'
    ) {
        return null;
    }
    const agent = headers?.['User-Agent']?.[0];
    return {
        at: Math.round(ts * 1000),
        name: nameOf(host),
        method,
        path: pathOf(uri).slice(0, longestPath),
        status,
        bytes: size,
        ms: Math.round(duration * 1_000_000) / 1000,
        ip,
        agent: typeof agent === 'string' && agent !== '' ? agent.slice(0, longestAgent) : null
    };
}

/** Whether it is the engine that asked itself whether it may get a certificate. */
export function isOwnQuestion({ path }: Visit): boolean {
    return path === permissionPath;
}

function nameOf(host: string): string {
    const port = host.lastIndexOf(':');
    const name = port > host.lastIndexOf(']') ? host.slice(0, port) : host;
    return name.toLowerCase();
}

/** A client may ask for a whole address (RFC 9112, 3.2.2), which can name a user and a password. */
function pathOf(uri: string): string {
    const query = uri.indexOf('?');
    const whole = query < 0 ? uri : uri.slice(0, query);
    if (whole.startsWith('/')) {
        return whole;
    }
    const authority = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i.exec(whole);
    return authority === null ? whole : whole.slice(authority[0].length) || '/';
}
