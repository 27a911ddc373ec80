/** Certificates of servers that are reached from other machines. Each signs itself: clients get it as the authority to trust. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate and its key, both PEM. */
export interface Certificate {
    readonly certificate: string;
    readonly key: string;
}

const years = 20;
const tags = {
    integer: 0x02,
    bits: 0x03,
    octets: 0x04,
    oid: 0x06,
    text: 0x0c,
    utcTime: 0x17,
    time: 0x18,
    sequence: 0x30,
    set: 0x31
} as const;
/** Object identifiers, as DER writes them. Source: RFC 5280, RFC 5758. */
const oids = {
    commonName: '550403',
    subjectAltName: '551d11',
    basicConstraints: '551d13',
    ecdsaWithSha256: '2a8648ce3d040302'
} as const;
const longestName = 64;

/** Makes a certificate for these host names and addresses. Source: RFC 5280, section 4.1 */
export function makeCertificate(name: string, hosts: readonly string[], now = new Date()): Certificate {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const end = new Date(now);
    end.setUTCFullYear(now.getUTCFullYear() + years);
    const serial = Buffer.concat([Buffer.from([0x40]), randomBytes(15)]);
    const algorithm = der(tags.sequence, oid(oids.ecdsaWithSha256));
    const subject = der(
        tags.sequence,
        der(
            tags.set,
            der(tags.sequence, oid(oids.commonName), der(tags.text, Buffer.from(name.slice(0, longestName))))
        )
    );
    const body = der(
        tags.sequence,
        der(0xa0, der(tags.integer, Buffer.from([2]))), // version 3
        der(tags.integer, serial),
        algorithm,
        subject,
        der(tags.sequence, time(now), time(end)),
        subject,
        publicKey.export({ type: 'spki', format: 'der' }),
        der(0xa3, der(tags.sequence, ...extensions(hosts)))
    );
    const signature = sign('sha256', body, privateKey);
    const whole = der(tags.sequence, body, algorithm, der(tags.bits, Buffer.from([0]), signature));
    return {
        certificate: `-----BEGIN CERTIFICATE-----\n${(whole.toString('base64').match(/.{1,64}/g) ?? []).join('\n')}\n-----END CERTIFICATE-----\n`,
        key: String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
    };
}

function extensions(hosts: readonly string[]): readonly Buffer[] {
    const names = hosts.map((host) =>
        isIP(host) === 0 ? der(0x82, Buffer.from(host, 'latin1')) : der(0x87, addressBytes(host))
    );
    const isAuthority = der(tags.sequence, Buffer.from([0x01, 0x01, 0xff]));
    return [
        der(
            tags.sequence,
            oid(oids.basicConstraints),
            Buffer.from([0x01, 0x01, 0xff]),
            der(tags.octets, isAuthority)
        ),
        der(tags.sequence, oid(oids.subjectAltName), der(tags.octets, der(tags.sequence, ...names)))
    ];
}

/** One value with its tag and its length. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
    const body = Buffer.concat(parts);
    const bytes = body.length < 256 ? [body.length] : [body.length >> 8, body.length & 255];
    const length = body.length < 128 ? bytes : [0x80 + bytes.length, ...bytes];
    return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const oid = (hex: string): Buffer => der(tags.oid, Buffer.from(hex, 'hex'));
/** Years up to 2049 have two digits. */
function time(date: Date): Buffer {
    const text = `${date.toISOString().replace(/[-:T]|\..*/g, '')}Z`;
    return date.getUTCFullYear() < 2050
        ? der(tags.utcTime, Buffer.from(text.slice(2)))
        : der(tags.time, Buffer.from(text));
}

function addressBytes(address: string): Buffer {
    if (isIP(address) === 4) {
        return Buffer.from(address.split('.').map(Number));
    }
    const [head = '', tail] = address.split('::');
    const words = (text: string): string[] => (text === '' ? [] : text.split(':'));
    const [first, last] = [words(head), words(tail ?? '')];
    const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
    return Buffer.from([...first, ...zeros, ...last].map((word) => word.padStart(4, '0')).join(''), 'hex');
}
