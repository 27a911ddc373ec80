/** The bounds of a host's fields, and the schemas that several of them share. */
import { joi } from '@portico/sdk';

/** The largest counts and lengths. Lengths are in characters, those that end in `Bytes` in bytes. */
export const bounds = {
    aliases: 100,
    upstreams: 64,
    locations: 100,
    headerOperations: 100,
    addresses: 1000,
    basicAuth: 50,
    copyHeaders: 50,
    corsOrigins: 100,
    corsMethods: 20,
    corsHeaders: 100,
    errorPages: 20,
    errorPageBytes: 65_536,
    tags: 50,
    tagLength: 64,
    notesLength: 10_000,
    advanced: 32,
    advancedBytes: 65_536,
    indexFiles: 10,
    batch: 1000
} as const;

/** What a host can do. */
export const hostTypes = ['proxy', 'redirect', 'static', 'php'] as const;
/** Whether the engine serves a host as it stands. */
export const hostStates = ['applied', 'pending', 'error', 'disabled'] as const;
/** Where the certificate of a host comes from. */
export const sslModes = ['auto', 'internal', 'certificate'] as const;
/** How an upstream is chosen. */
export const policies = [
    'round_robin',
    'least_conn',
    'ip_hash',
    'first',
    'random',
    'header',
    'cookie',
    'weighted'
] as const;
/** The header of the policy `header` and the cookie of the policy `cookie`, when the body names none. */
export const defaultKeys = { header: 'X-Session-Id', cookie: 'lb' } as const;

/** Text of at most so many characters. */
export const text = (longest: number) => joi.string().max(longest);
/** A DNS name in text form, of at most 253 characters. */
export const name = () => text(253);
/** Where the engine sends requests. */
export const address = () =>
    text(300).description(
        '`host:port`, `http://…`, `https://…` or `h2c://…` of host and port, or `unix/` with the absolute path of a socket (needs `hosts:unsafe`)'
    );
/** The share of one address among several. */
export const weight = () => joi.number().integer().min(1).max(1000).default(1);
/** A whole number of seconds. */
export const seconds = (least: number, most: number) => joi.number().integer().min(least).max(most);
/** A path of a URL or of the file system. */
export const path = (longest = 1024) => text(longest);
