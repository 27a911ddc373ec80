/** Addresses of repositories: which are accepted, and what they consist of. */
import { fail } from '../../errors.ts';

/** The address of a repository. */
export interface Address {
    readonly scheme: 'https' | 'http' | 'ssh';
    /** What git gets: never a password, never beginning with `-`. */
    readonly url: string;
    /** In lower case; an address of IPv6 without brackets. */
    readonly host: string;
    readonly port: number;
    /** Whether the URL names the port. */
    readonly hasPort: boolean;
}

const schemes = { 'https:': ['https', 443], 'http:': ['http', 80], 'ssh:': ['ssh', 22] } as const;
const hostForm = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])$/;
const userForm = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
/** `user@host:path`, which git reads as ssh. */
const shortForm = /^([^@:/\s]+)@([^@:/\s]+):([^\s]+)$/;
/** What a part of a path may hold: nothing that a shell on the other side would read. */
const pathForm = /^[A-Za-z0-9._~%+@/-]{1,1000}$/;

/** Reads the address of a repository. @throws REPOSITORY_REFUSED 42250 with `why` */
export function parseAddress(text: string): Address {
    if (text.startsWith('-') || /[\s\p{C}]/u.test(text)) {
        throw refused('It begins with a hyphen, or holds a blank');
    }
    const [, user, host, path] = shortForm.exec(text) ?? [];
    if (user !== undefined && host !== undefined && path !== undefined && !text.includes('://')) {
        return readShort(user, host.toLowerCase(), path);
    }
    if (!URL.canParse(text) || !/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
        throw refused('Only https, ssh and user@host:path are accepted');
    }
    return readUrl(new URL(text));
}

function readShort(user: string, host: string, path: string): Address {
    if (!userForm.test(user) || !hostForm.test(host)) {
        throw refused('Its user or its host is none');
    }
    checkPath(path);
    return { scheme: 'ssh', url: `${user}@${host}:${path}`, host, port: 22, hasPort: false };
}

function readUrl(url: URL): Address {
    const [scheme, usual] = schemes[url.protocol as keyof typeof schemes] ?? [];
    if (scheme === undefined || usual === undefined) {
        throw refused('Only https, ssh and user@host:path are accepted');
    }
    if (url.password !== '') {
        throw refused('A password has no place in it: use a connection');
    }
    // The parser does not lower the host of a scheme that it does not know, and ssh is one.
    const host = url.hostname.toLowerCase();
    if (!hostForm.test(host) || url.search !== '' || url.hash !== '') {
        throw refused('Its host is none, or it has more than a path');
    }
    if (url.username !== '' && (scheme !== 'ssh' || !userForm.test(url.username))) {
        throw refused('Only addresses of ssh have a user');
    }
    checkPath(url.pathname.slice(1));
    const user = url.username === '' ? '' : `${url.username}@`;
    const port = url.port === '' ? '' : `:${url.port}`;
    return {
        scheme,
        url: `${scheme}://${user}${host}${port}${url.pathname}`,
        host: host.replace(/^\[(.*)\]$/, '$1'),
        port: url.port === '' ? usual : Number(url.port),
        hasPort: url.port !== ''
    };
}

function checkPath(path: string): void {
    if (!pathForm.test(path) || path.split('/').some((part) => part.startsWith('-') || part === '..')) {
        throw refused('Its path is none of a repository');
    }
}

/** Host as a connection names it: with the port that the URL has. */
export function hostOf({ host, port, hasPort }: Address): string {
    const name = host.includes(':') ? `[${host}]` : host;
    return hasPort ? `${name}:${port}` : name;
}

/** The address of a submodule, which may be relative to that of its parent. @throws REPOSITORY_REFUSED 42250 */
export function submoduleAddress(parent: Address, text: string): Address {
    if (!/^\.{1,2}\//.test(text)) {
        return parseAddress(text);
    }
    const base = parent.url.replace(/\/+$/, '').split('/');
    for (const part of text.split('/')) {
        if (part === '..') {
            base.pop();
        } else if (part !== '.' && part !== '') {
            base.push(part);
        }
    }
    const joined = parseAddress(base.join('/'));
    if (joined.host !== parent.host || joined.port !== parent.port) {
        throw refused('A relative address leaves the host');
    }
    return joined;
}

function refused(why: string): Error {
    return fail.REPOSITORY_REFUSED({ why });
}
