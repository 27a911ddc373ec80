/**
 * Brings names, addresses and ranges to the one spelling under which they are stored and served. Pure. Text with more than one meaning is
 * refused, with what to write instead.
 */
import { isIPv4 } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';

import ipaddr from 'ipaddr.js';

import { parseIp, parseRange, unmapped } from '../../../platform/address/ip.ts';
import type { Invalid } from '../../../platform/errors.ts';

/** Collects what is wrong with a body, so that the client learns of everything at once. */
export class Faults {
    readonly #list: Invalid[] = [];

    get list(): readonly Invalid[] {
        return this.#list;
    }

    add(path: string, message: string): void {
        this.#list.push({ path, message });
    }
}

/** Longest DNS name and longest label (RFC 1035, section 2.3.4). */
const longestName = 253;
const longestLabel = 63;
/** `sun_path` holds 108 bytes, the final zero included (unix(7)). */
const longestSocket = 107;

const label = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
/** Names inside private networks often have underscores. */
const innerLabel = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/;
const token = /^[!#$%&'+.^_`|~0-9A-Za-z-]+$/;

/**
 * A host's name: lower-case, A-labels, `*` only as the whole first label.
 * @returns the text itself when it is refused
 */
export function siteName(text: string, path: string, faults: Faults): string {
    const wildcard = text.startsWith('*.');
    const base = wildcard ? text.slice(2) : text;
    if (base.includes('*')) {
        faults.add(path, `${path} may have * only as its whole first label, as in *.example.com`);
        return text;
    }
    const name = dnsName(base, label, path, faults);
    if (name === null) {
        return text;
    }
    const whole = wildcard ? `*.${name}` : name;
    if (whole.length > longestName) {
        faults.add(path, `${path} is longer than ${longestName} characters`);
    }
    return whole;
}

function dnsName(text: string, labels: RegExp, path: string, faults: Faults): string | null {
    const refuse = (message: string): null => {
        faults.add(path, `${path} ${message}`);
        return null;
    };
    if (text === '') {
        return refuse('is not a DNS name');
    }
    if (/[:[\]]/.test(text)) {
        return refuse('must be a DNS name without a port, and not an IP address');
    }
    if (text.endsWith('.')) {
        return refuse('must not end with a dot');
    }
    const name = toAscii(text);
    if (name === null) {
        return refuse('is not a DNS name');
    }
    if (name !== text.toLowerCase() && domainToUnicode(name) !== text.normalize('NFC').toLowerCase()) {
        return refuse(`would become ${name}: write that instead if it is meant`);
    }
    const parts = name.split('.');
    if (name.length > longestName || parts.some((part) => part.length > longestLabel)) {
        return refuse(
            `is too long: ${longestName} characters in all and ${longestLabel} between dots are allowed`
        );
    }
    if (!parts.every((part) => labels.test(part))) {
        return refuse('is not a DNS name: letters, digits and hyphens between dots are allowed');
    }
    if (/^(?:\d+|0x[0-9a-f]*)$/.test(parts.at(-1) ?? '')) {
        return refuse('is an IP address or would be taken for one');
    }
    if (
        parts.some(
            (part) =>
                part.startsWith('xn--') &&
                (domainToUnicode(part) === part || domainToASCII(domainToUnicode(part)) !== part)
        )
    ) {
        return refuse('has a part that is not valid Punycode');
    }
    return name;
}

/** Returns ASCII unchanged: Node's conversion would also decode percent signs and read numbers as addresses. */
function toAscii(text: string): string | null {
    if (/^[\x21-\x7e]+$/.test(text)) {
        return text.toLowerCase();
    }
    if (/[\x00-\x2c\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]/.test(text)) {
        return null;
    }
    const name = domainToASCII(text);
    return name === '' ? null : name;
}

/** A parsed upstream address. */
export interface Address {
    /** As it is stored: `host:port` with its scheme if one was given, or `unix/<absolute path>`. */
    readonly text: string;
    readonly scheme: 'http' | 'https' | 'h2c';
    /** Empty for a socket. */
    readonly host: string;
    /** 0 for a socket. */
    readonly port: number;
    /** The socket's absolute path; null for a network address. */
    readonly socket: string | null;
}

const schemePorts = { http: 80, https: 443, h2c: 80 } as const;

/** `host:port`, `http://…`, `https://…`, `h2c://…` or `unix/<absolute path>`. Null when it is refused. */
export function upstreamAddress(text: string, path: string, faults: Faults): Address | null {
    if (text.startsWith('unix/')) {
        return socketAddress(text, path, faults);
    }
    const [, scheme, rest] = /^(?:(https?|h2c):\/\/)?(.*)$/is.exec(text) ?? [];
    const kind = scheme?.toLowerCase() as Address['scheme'] | undefined;
    const authority = networkAuthority(
        rest ?? '',
        kind === undefined ? null : schemePorts[kind],
        path,
        faults
    );
    return authority === null
        ? null
        : {
              text: `${kind === undefined ? '' : `${kind}://`}${authority.text}`,
              scheme: kind ?? 'http',
              host: authority.host,
              port: authority.port,
              socket: null
          };
}

/** The address of a FastCGI server: `host:port` or `unix/<absolute path>`. Null when it is refused. */
export function fastcgiAddress(text: string, path: string, faults: Faults): Address | null {
    if (/^[a-z0-9+.-]+:\/\//i.test(text)) {
        faults.add(path, `${path} must be host:port or unix/ with an absolute path`);
        return null;
    }
    return upstreamAddress(text, path, faults);
}

function socketAddress(text: string, path: string, faults: Faults): Address | null {
    const socket = text.slice('unix/'.length);
    if (
        socket === '/' ||
        !/^\/[\x21-\x7e]*$/.test(socket) ||
        /[{}|*?[\]\\]/.test(socket) ||
        !isPlainPath(socket)
    ) {
        faults.add(
            path,
            `${path} must be unix/ with an absolute path of visible characters, without "..", empty parts or any of {}|*?[]\\`
        );
        return null;
    }
    if (socket.length > longestSocket) {
        faults.add(path, `${path} is longer than a socket's path can be (${longestSocket} bytes)`);
        return null;
    }
    return { text, scheme: 'http', host: '', port: 0, socket };
}

function networkAuthority(
    text: string,
    defaultPort: number | null,
    path: string,
    faults: Faults
): { text: string; host: string; port: number } | null {
    const refuse = (message: string): null => {
        faults.add(path, `${path} ${message}`);
        return null;
    };
    if (/[/?#@\\\s]/.test(text)) {
        return refuse(
            'must be host:port, a URL of scheme, host and port only, or unix/ with an absolute path'
        );
    }
    const match = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text);
    if (match === null) {
        return refuse('must be host:port; an IPv6 address goes in brackets');
    }
    const [, name = '', portText] = match;
    const port =
        portText === undefined ? defaultPort : /^[1-9]\d{0,4}$/.test(portText) ? Number(portText) : NaN;
    if (port === null) {
        return refuse('needs a port, as in backend:8080');
    }
    if (!(port <= 65535)) {
        return refuse('must have a port from 1 to 65535');
    }
    const host = name.startsWith('[')
        ? bracketed(name.slice(1, -1))
        : isIPv4(name)
          ? name
          : dnsName(name, innerLabel, path, faults);
    if (host === undefined) {
        return refuse('must have an IPv6 address without a zone between the brackets');
    }
    return host === null ? null : { text: `${host}:${port}`, host: host.replace(/^\[|\]$/g, ''), port };
}

function bracketed(text: string): string | undefined {
    const ip = parseIp(text);
    return ip?.kind() === 'ipv6' ? `[${ip.toString()}]` : undefined;
}

/** Whether a text is an absolute path without `.`, `..`, empty parts and control characters. `/` is one. */
export function isPlainPath(path: string): boolean {
    return (
        path === '/' ||
        (/^(?:\/[^/\x00-\x1f\x7f]+)+$/.test(path) &&
            !path.split('/').some((part) => part === '.' || part === '..'))
    );
}

/** An address, or a range as address/bits with the host bits cleared. An IPv4-mapped IPv6 address becomes IPv4, as the engine sees it. */
export function addressRange(text: string, path: string, faults: Faults): string {
    const bitsText = text.split('/')[1];
    const range = parseRange(text);
    if (range === null || (bitsText !== undefined && String(range.prefix) !== bitsText)) {
        faults.add(path, `${path} must be an IP address or a range as 10.0.0.0/8`);
        return text;
    }
    const isMapped = range.prefix >= 96 && unmapped(range.base) !== range.base;
    const bytes = (isMapped ? unmapped(range.base) : range.base).toByteArray();
    const bits = isMapped ? range.prefix - 96 : range.prefix;
    const first = ipaddr.fromByteArray(
        bytes.map((byte, index) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - index * 8))))
    );
    return bits === bytes.length * 8 ? first.toString() : `${first.toString()}/${bits}`;
}

/** Headers that belong to one connection, or frame the message: the engine alone sets them (RFC 9110, section 7.6.1). */
const hopByHop = new Set([
    'connection',
    'keep-alive',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'content-length'
]);

/** Refuses names of headers that must not be set, added or deleted. */
export function headerName(name: string, path: string, faults: Faults): void {
    if (!isToken(name)) {
        faults.add(path, `${path} is not a header's name`);
    } else if (hopByHop.has(name.toLowerCase())) {
        faults.add(path, `${path}: ${name} belongs to a single connection, and the engine sets it`);
    }
}

/** Whether a text is a token (RFC 9110, section 5.6.2) without `*`, which the engine would read as a pattern. */
export function isToken(text: string): boolean {
    return token.test(text);
}

/** Whether a text can be a header's value (RFC 9110, section 5.5), without control characters that a log or a terminal would obey. */
export function isHeaderValue(text: string): boolean {
    return /^[\t\x20-\x7e\u0080-\u{10ffff}]*$/u.test(text);
}

/** An absolute http or https URL without credentials; null when it is refused. */
export function webUrl(text: string, path: string, faults: Faults): URL | null {
    const url =
        /^https?:\/\/[^\s\\]+$/i.test(text) && /^[\x21-\x7e\u00a1-\u{10ffff}]+$/u.test(text)
            ? URL.parse(text)
            : null;
    if (url === null || url.hostname === '') {
        faults.add(path, `${path} must be an absolute http:// or https:// URL`);
        return null;
    }
    if (url.username !== '' || url.password !== '') {
        faults.add(path, `${path} must not carry a user name or a password`);
        return null;
    }
    return url;
}
