/**
 * What no host may reach, for every actor and every way in: the folders, sockets and listeners of the panel and of its engine. Also decides
 * which parts of a host need `hosts:unsafe`.
 */
import { hostname, networkInterfaces } from 'node:os';

import type { EngineSettings, Site, SiteCertificate } from '../../../engine/site.ts';
import { type Ip, parseIp, unmapped } from '../../../platform/address/ip.ts';
import type { Invalid } from '../../../platform/errors.ts';
import { type Address, fastcgiAddress, Faults, upstreamAddress } from '../input/normalise.ts';
import { addressesInHostsFile } from './hosts-file.ts';
import { fileFault, folderFault, type ForbiddenPlaces, resolvePath } from './paths.ts';

/** What a site is held against. */
export interface SafetyContext extends ForbiddenPlaces {
    /** The settings of the draft that the site becomes part of. */
    readonly settings: EngineSettings;
    /** The certificates of the same draft. */
    readonly certificates: ReadonlyMap<number, SiteCertificate>;
    /** Addresses that this machine is known by from outside, beside those of its interfaces. */
    readonly addresses: readonly string[];
    /** Fields whose text the engine would not serve as typed, and handlers that no host may have. */
    refusedTexts(site: Site): readonly Invalid[];
}

/** Every rule that a site breaks. Reads the links of the file system. */
export function checkSite(site: Site, context: SafetyContext): readonly Invalid[] {
    const faults = new Faults();
    for (const { path, message } of context.refusedTexts(site)) {
        faults.add(path, `${path} ${message}`);
    }
    for (const { path, address } of dialled(site)) {
        checkAddress(address, path, site, context, faults);
    }
    for (const [path, root] of [
        ['static.root', site.static?.root],
        ['php.root', site.php?.root]
    ] as const) {
        const fault = root === undefined ? null : folderFault(root, context);
        if (fault !== null) {
            faults.add(path, `${path} ${fault}`);
        }
    }
    checkAdvanced(site.advanced, 'advanced', site, context, faults);
    checkCertificate(site, context, faults);
    return faults.list;
}

/** Every address that the engine dials for this site, with the field that names it. */
export function dialled(site: Site): readonly { readonly path: string; readonly address: Address }[] {
    const quiet = new Faults();
    const found = (path: string, address: Address | null): { path: string; address: Address }[] =>
        address === null ? [] : [{ path, address }];
    return [
        ...site.upstreams.flatMap(({ address }, at) =>
            found(`upstreams.${at}.address`, upstreamAddress(address, '', quiet))
        ),
        ...site.locations.flatMap(({ upstream }, at) =>
            found(`locations.${at}.upstream`, upstreamAddress(upstream, '', quiet))
        ),
        ...(site.php?.fastcgi === undefined
            ? []
            : found('php.fastcgi', fastcgiAddress(site.php.fastcgi, '', quiet))),
        ...(site.php?.upstreams ?? []).flatMap(({ address }, at) =>
            found(`php.upstreams.${at}.address`, fastcgiAddress(address, '', quiet))
        ),
        ...found(
            'access.forwardAuth.url',
            site.access.forwardAuth === null
                ? null
                : upstreamAddress(URL.parse(site.access.forwardAuth.url)?.origin ?? '', '', quiet)
        )
    ];
}

function checkAddress(
    address: Address,
    path: string,
    site: Site,
    context: SafetyContext,
    faults: Faults
): void {
    if (address.socket !== null) {
        const fault = fileFault(address.socket, context);
        if (fault !== null) {
            faults.add(path, `${path} ${fault}`);
        }
        return;
    }
    const { httpPort, httpsPort } = context.settings;
    if ((address.port === httpPort || address.port === httpsPort) && isOwnHost(address.host, site, context)) {
        faults.add(path, `${path} is the engine's own listener: requests would go round in circles`);
    }
}

function isOwnHost(host: string, site: Site, context: SafetyContext): boolean {
    const address = plainIp(host);
    if (address !== null) {
        return isOwnAddress(address, context);
    }
    const own = hostname().toLowerCase();
    return (
        host === 'localhost' ||
        host.endsWith('.localhost') ||
        host === own ||
        own.startsWith(`${host}.`) ||
        host === site.domain ||
        site.aliases.includes(host) ||
        addressesInHostsFile(host).some((text) => {
            const found = plainIp(text);
            return found !== null && isOwnAddress(found, context);
        })
    );
}

function isOwnAddress(ip: Ip, context: SafetyContext): boolean {
    const kind = ip.range();
    const address = ip.toString();
    if (kind === 'loopback' || address === '0.0.0.0' || address === '::') {
        return true;
    }
    const local = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    return [...local.map((entry) => entry.address), ...context.addresses].some(
        (text) => plainIp(text)?.toString() === address
    );
}

function plainIp(text: string): Ip | null {
    const ip = parseIp(text.replace(/%.*$/, ''));
    return ip === null ? null : unmapped(ip);
}

/** Checks every path, socket and address inside handlers in the engine's own language. */
function checkAdvanced(
    value: unknown,
    path: string,
    site: Site,
    context: SafetyContext,
    faults: Faults
): void {
    if (typeof value === 'string') {
        checkAdvancedText(value, path, site, context, faults);
    } else if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) {
            checkAdvanced(inner, `${path}.${key}`, site, context, faults);
        }
    }
}

function checkAdvancedText(
    text: string,
    path: string,
    site: Site,
    context: SafetyContext,
    faults: Faults
): void {
    const key = path.slice(path.lastIndexOf('.') + 1);
    const socket = /(?:^|\s)unix[+\w]*\/(.*)$/is.exec(text)?.[1];
    const fault =
        socket !== undefined
            ? fileFault(`/${socket.replace(/^\/+/, '').replace(/\|\d+$/, '')}`, context)
            : key.endsWith('root')
              ? text.startsWith('/')
                  ? folderFault(text, context)
                  : 'must be an absolute path'
              : // Any other text with a leading slash may be part of a URL.
                text.startsWith('/') && resolvePath(text) !== null
                ? fileFault(text, context)
                : null;
    if (fault !== null) {
        faults.add(path, `${path} ${fault}`);
    }
    if (text.includes('{') && (key.endsWith('root') || socket !== undefined)) {
        faults.add(
            path,
            `${path} may not have placeholders: a request could lead it into the folders of the panel or of its engine`
        );
    }
    if (key === 'dial' && socket === undefined) {
        const address = upstreamAddress(text, '', new Faults());
        if (address !== null) {
            checkAddress(address, path, site, context, faults);
        }
    }
}

function checkCertificate(site: Site, { certificates }: SafetyContext, faults: Faults): void {
    if (site.sslMode !== 'certificate' || site.certificateId === null) {
        return;
    }
    const certificate = certificates.get(site.certificateId);
    if (certificate === undefined) {
        faults.add('certificateId', `certificateId: there is no certificate ${site.certificateId}`);
        return;
    }
    const missing = [site.domain, ...site.aliases].filter((name) => !covers(certificate.names, name));
    if (missing.length > 0) {
        faults.add(
            'certificateId',
            `certificateId: certificate ${site.certificateId} is not valid for ${missing.join(', ')}`
        );
    }
}

/** Whether the names of a certificate cover the name of a host; a wildcard stands for exactly one label (RFC 9525, section 6.3). */
export function covers(names: readonly string[], name: string): boolean {
    return (
        names.includes(name) ||
        (!name.startsWith('*.') && name.includes('.') && names.includes(`*${name.slice(name.indexOf('.'))}`))
    );
}
