/** Reads what an upload holds and refuses, with the reason, whatever a client of a site would stumble over. Pure but for the time of day, which is given. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

import type { Invalid } from '../../../platform/errors.ts';

/** Bounds of an upload, in characters and pieces. */
export const uploadBounds = { certificate: 65_536, key: 16_384, chain: 10, names: 250 } as const;

const leastRsaBits = 2048;
const curves = new Set(['prime256v1', 'secp384r1', 'secp521r1']);
/** id-kp-serverAuth and anyExtendedKeyUsage (RFC 5280, section 4.2.1.12). */
const serverUsages = new Set(['1.3.6.1.5.5.7.3.1', '2.5.29.37.0']);

/** A chain and its key, proven to belong together. */
export interface ParsedCertificate {
    /** PEM of leaf and issuers in order, in one spelling. */
    readonly chain: string;
    /** PEM, PKCS #8. */
    readonly key: string;
    /** DNS names of the leaf, lower-case. */
    readonly names: readonly string[];
    readonly issuer: string;
    /** Hexadecimal, upper-case. */
    readonly serial: string;
    readonly notBefore: Date;
    readonly notAfter: Date;
    /** SHA-256 of the leaf: lower-case hexadecimal. */
    readonly fingerprint: string;
}

interface Block {
    readonly label: string;
    readonly text: string;
}

/** Every fault of an upload, or what it holds. */
export function parseUpload(
    certificate: string,
    key: string,
    now: number
): { readonly faults: readonly Invalid[] } | { readonly parsed: ParsedCertificate } {
    const faults: Invalid[] = [];
    const add = (path: string, message: string): void => void faults.push({ path, message });
    const chain = readChain(certificate, add);
    const privateKey = readKey(key, add);
    const leaf = chain[0];
    if (leaf === undefined) {
        return { faults };
    }
    const names = dnsNames(leaf);
    if (names.length === 0) {
        add(
            'certificate',
            'certificate has no DNS names (subject alternative names); the common name does not count'
        );
    }
    if (names.length > uploadBounds.names) {
        add('certificate', `certificate has more than ${uploadBounds.names} names`);
    }
    checkTimes(chain, now, add);
    checkOrder(chain, add);
    checkStrength(leaf.publicKey, add);
    if (
        leaf.keyUsage !== undefined &&
        leaf.keyUsage.length > 0 &&
        !leaf.keyUsage.some((usage) => serverUsages.has(usage))
    ) {
        add('certificate', 'certificate is not meant for servers (extended key usage)');
    }
    if (privateKey !== null && !leaf.checkPrivateKey(privateKey)) {
        add('key', 'key does not belong to the first certificate');
    }
    if (faults.length > 0 || privateKey === null) {
        return { faults };
    }
    return {
        parsed: {
            chain: chain
                .map((each) => each.toString().trim())
                .join('\n')
                .concat('\n'),
            key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
            ...factsOf(leaf)
        }
    };
}

function factsOf(leaf: X509Certificate): Omit<ReadCertificate, 'pem'> {
    return {
        names: dnsNames(leaf),
        issuer: leaf.issuer.replaceAll('\n', ', '),
        serial: leaf.serialNumber,
        notBefore: leaf.validFromDate,
        notAfter: leaf.validToDate,
        fingerprint: leaf.fingerprint256.replaceAll(':', '').toLowerCase()
    };
}

/** What a certificate says of itself. */
export interface ReadCertificate extends Pick<
    ParsedCertificate,
    'names' | 'issuer' | 'serial' | 'notBefore' | 'notAfter' | 'fingerprint'
> {
    readonly pem: string;
}

/** The certificates of a PEM text as they are, good or not; undefined when it is none. */
export function readCertificates(text: string): readonly ReadCertificate[] | undefined {
    const faults: string[] = [];
    const chain = readChain(text, (_path, message) => void faults.push(message));
    return faults.length > 0
        ? undefined
        : chain.map((certificate) => ({ ...factsOf(certificate), pem: certificate.toString().trim() }));
}

type Add = (path: string, message: string) => void;

function readChain(text: string, add: Add): readonly X509Certificate[] {
    const blocks = readBlocks(text);
    if (blocks === null) {
        add(
            'certificate',
            'certificate must be PEM: certificates between BEGIN and END lines, and nothing else'
        );
        return [];
    }
    if (blocks.some(({ label }) => label.includes('PRIVATE KEY'))) {
        add('certificate', 'certificate holds a private key: it belongs into key');
        return [];
    }
    if (blocks.some(({ label }) => label !== 'CERTIFICATE')) {
        add('certificate', 'certificate holds something else than certificates');
        return [];
    }
    if (blocks.length > uploadBounds.chain) {
        add('certificate', `certificate holds more than ${uploadBounds.chain} certificates`);
        return [];
    }
    try {
        return blocks.map(({ text: block }) => new X509Certificate(block));
    } catch {
        add('certificate', 'certificate is damaged');
        return [];
    }
}

function readKey(text: string, add: Add): KeyObject | null {
    const blocks = readBlocks(text)?.filter(({ label }) => label !== 'EC PARAMETERS');
    const [block, ...others] = blocks ?? [];
    if (
        block === undefined ||
        others.length > 0 ||
        !/^(?:ENCRYPTED |RSA |EC )?PRIVATE KEY$/.test(block.label)
    ) {
        add('key', 'key must be PEM: one private key between BEGIN and END lines, and nothing else');
        return null;
    }
    if (block.label.startsWith('ENCRYPTED') || /^Proc-Type:.*ENCRYPTED/m.test(block.text)) {
        add('key', 'key is encrypted: decrypt it first, as with openssl pkey; it is sealed at rest here');
        return null;
    }
    try {
        return createPrivateKey({ key: block.text, format: 'pem' });
    } catch {
        add('key', 'key is damaged, or of a kind that is not supported');
        return null;
    }
}

/** The blocks of a PEM text; null when there is none, or anything but white space between them (RFC 7468, section 2). */
function readBlocks(text: string): readonly Block[] | null {
    const blocks: Block[] = [];
    const rest = text.replace(
        /-----BEGIN ([A-Z0-9 ]+)-----[^-]*(?:-(?!----)[^-]*)*-----END \1-----/g,
        (block, label: string) => {
            blocks.push({ label, text: block });
            return '';
        }
    );
    return blocks.length === 0 || rest.trim() !== '' ? null : blocks;
}

/** Names as Node prints them: those with unusual characters are quoted, and are no names of ours. */
function dnsNames(leaf: X509Certificate): readonly string[] {
    const listed = leaf.subjectAltName
        ?.split(', ')
        .flatMap(
            (entry) => /^DNS:((?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)$/i.exec(entry)?.[1]?.toLowerCase() ?? []
        );
    return [...new Set(listed)];
}

function checkTimes(chain: readonly X509Certificate[], now: number, add: Add): void {
    chain.forEach((certificate, at) => {
        const which = at === 0 ? 'certificate' : `certificate: number ${at + 1} of the chain`;
        if (certificate.validToDate.getTime() <= now) {
            add('certificate', `${which} expired on ${certificate.validToDate.toISOString()}`);
        }
        if (certificate.validFromDate.getTime() > now) {
            add('certificate', `${which} is not valid before ${certificate.validFromDate.toISOString()}`);
        }
    });
}

/** Each one is issued by the next (RFC 8446, section 4.4.2). */
function checkOrder(chain: readonly X509Certificate[], add: Add): void {
    chain.slice(1).forEach((issuer, at) => {
        const issued = chain[at];
        if (issued === undefined) {
            return;
        }
        if (!issuer.ca || !issued.checkIssued(issuer) || !issued.verify(issuer.publicKey)) {
            add(
                'certificate',
                `certificate: number ${at + 2} of the chain did not issue number ${at + 1}; the order is the host's own first, then each issuer`
            );
        }
    });
}

function checkStrength(key: KeyObject, add: Add): void {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
    const strong =
        type === 'ed25519' ||
        (type === 'ec' && curves.has(details?.namedCurve ?? '')) ||
        (type === 'rsa' && (details?.modulusLength ?? 0) >= leastRsaBits);
    if (!strong) {
        add(
            'certificate',
            `certificate has a key that is too weak or not supported: RSA of at least ${leastRsaBits} bits, ECDSA on P-256, P-384 or P-521, or Ed25519 is needed`
        );
    }
}
