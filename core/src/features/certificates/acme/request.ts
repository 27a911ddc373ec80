/** A certificate signing request (RFC 2986): the names, the public key, and nothing that a CA would ignore. */
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';

/** A new key of a certificate: ECDSA on P-256, PEM in PKCS #8. */
export function newCertificateKey(): string {
    return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
        type: 'pkcs8',
        format: 'pem'
    }) as string;
}

/** DER. @param names - DNS names, A-labels, wildcards among them */
export function signingRequest(names: readonly string[], key: string): Buffer {
    const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' });
    const alternatives = sequence(...names.map((name) => tagged(0x82, Buffer.from(name, 'ascii'))));
    const extensions = sequence(sequence(oid.subjectAltName, tagged(0x04, alternatives)));
    const attributes = tagged(0xa0, sequence(oid.extensionRequest, tagged(0x31, extensions)));
    const subject = sequence();
    const info = sequence(tagged(0x02, Buffer.from([0])), subject, publicKey, attributes);
    const signature = sign('sha256', info, key);
    return sequence(
        info,
        sequence(oid.ecdsaWithSha256),
        tagged(0x03, Buffer.concat([Buffer.from([0]), signature]))
    );
}

function tagged(tag: number, content: Buffer): Buffer {
    const length =
        content.length < 0x80
            ? [content.length]
            : content.length < 0x100
              ? [0x81, content.length]
              : [0x82, content.length >> 8, content.length & 0xff];
    return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
    return tagged(0x30, Buffer.concat(parts));
}

const oid = {
    subjectAltName: tagged(0x06, Buffer.from('551d11', 'hex')),
    extensionRequest: tagged(0x06, Buffer.from('2a864886f70d01090e', 'hex')),
    ecdsaWithSha256: tagged(0x06, Buffer.from('2a8648ce3d040302', 'hex'))
};
