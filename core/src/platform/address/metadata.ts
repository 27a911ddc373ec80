/** Where machines of clouds give away their credentials: link-local addresses, and the fixed ones that some clouds use instead. */
import ipaddr from 'ipaddr.js';

import { contains, type Ip, parseIp, parseRanges } from './ip.ts';

const ranges = parseRanges([
    '169.254.0.0/16',
    'fe80::/10',
    // Amazon, Google, Scaleway, Alibaba, Oracle and Azure.
    'fd00:ec2::/32',
    'fd20:ce::/32',
    'fd00:42::/32',
    '100.100.100.200/32',
    '192.0.0.192/32',
    '168.63.129.16/32'
]);
/**
 * Addresses that carry an IPv4 address in their last four bytes: IPv4-compatible and IPv4-mapped (RFC 4291), IPv4-translated (RFC 2765), and
 * NAT64 (RFC 6052, RFC 8215).
 */
const carriers = parseRanges(['::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48']);
/** 6to4 (RFC 3056) carries it behind the prefix. */
const sixToFour = parseRanges(['2002::/16']);
/** Names that only the resolvers of clouds know. */
const names = new Set([
    'metadata',
    'metadata.google.internal',
    'metadata.goog',
    'metadata.tencentyun.com',
    'instance-data',
    'instance-data.ec2.internal'
]);

/** Whether a host is a cloud's metadata service or another link-local address. @param host - a name, or an address without brackets */
export function isMetadataHost(host: string): boolean {
    const ip = parseIp(host.replace(/%.*$/, ''));
    return ip === null ? names.has(host.toLowerCase().replace(/\.$/, '')) : isMetadataAddress(ip);
}

function isMetadataAddress(ip: Ip): boolean {
    const inner = carriers.some((range) => contains(range, ip))
        ? ipaddr.fromByteArray(ip.toByteArray().slice(-4))
        : sixToFour.some((range) => contains(range, ip))
          ? ipaddr.fromByteArray(ip.toByteArray().slice(2, 6))
          : ip;
    return ranges.some((range) => contains(range, inner));
}
