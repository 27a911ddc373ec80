/**
 * The secrets of a document: one block, sealed under a key that a memory-hard function makes of the passphrase (argon2id, RFC 9106). All of
 * the document is authenticated with it, so that no secret can be put beside another name, and no name beside another secret.
 */
import {
    createCipheriv,
    createDecipheriv,
    createHash,
    hkdfSync,
    randomBytes,
    timingSafeEqual
} from 'node:crypto';

import { hashRaw } from '@node-rs/argon2';
import { joi, type Value } from '@portico/sdk';

import { digestOf } from './digest.ts';

const ivBytes = 12;
const tagBytes = 16;
const keyBytes = 32;
const saltBytes = 16;
/** `Algorithm.Argon2id`; the package declares it as a const enum, which isolated modules cannot read. */
const argon2id = 2;

/** What one derivation costs today. */
const cost = { memoryKiB: 65_536, passes: 3, lanes: 1 } as const;
/** A document that asks for more would take this machine's memory. */
const most = { memoryKiB: 262_144, passes: 10, lanes: 4 } as const;

const base64url = (bytes: number) =>
    joi
        .string()
        .pattern(/^[A-Za-z0-9_-]+$/)
        .min(Math.ceil((bytes * 4) / 3))
        .required();

/** The part of a document that holds its secrets. */
export const sealedShape = joi.object({
    kdf: joi
        .object({
            name: joi.string().valid('argon2id').required(),
            memoryKiB: joi.number().integer().min(8_192).max(most.memoryKiB).required(),
            passes: joi.number().integer().min(1).max(most.passes).required(),
            lanes: joi.number().integer().min(1).max(most.lanes).required(),
            salt: base64url(saltBytes).max(86)
        })
        .required(),
    cipher: joi.string().valid('aes-256-gcm').required(),
    check: base64url(keyBytes).max(43).description('Tells a wrong passphrase from a damaged document'),
    box: base64url(ivBytes + tagBytes)
});
/** The sealed secrets of a document. */
export type Sealed = Value<typeof sealedShape>;

/** Secrets by section, then by their path in it. */
export type SecretMap = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Why a block did not open. */
export class Unsealed extends Error {
    readonly why: 'passphrase' | 'damaged';

    constructor(why: 'passphrase' | 'damaged') {
        super(why);
        this.why = why;
    }
}

interface Keys {
    readonly box: Buffer;
    readonly check: string;
}

/** @param document - all of it but the secrets */
export async function seal(secrets: SecretMap, passphrase: string, document: object): Promise<Sealed> {
    const kdf = { name: 'argon2id', ...cost, salt: randomBytes(saltBytes).toString('base64url') } as const;
    const keys = await derive(passphrase, kdf);
    const header = { kdf, cipher: 'aes-256-gcm', check: keys.check } as const;
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(header.cipher, keys.box, iv);
    cipher.setAAD(bound(document, header));
    const plain = JSON.stringify([...secrets].map(([section, entries]) => [section, [...entries]]));
    return {
        ...header,
        box: Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
            'base64url'
        )
    };
}

/** Opens the sealed box of a document. @throws Unsealed when the passphrase is wrong, or when box or document was changed */
export async function open(sealed: Sealed, passphrase: string, document: object): Promise<SecretMap> {
    const { box, ...header } = sealed;
    const keys = await derive(passphrase, sealed.kdf);
    if (!timingSafeEqual(digest(keys.check), digest(sealed.check))) {
        throw new Unsealed('passphrase');
    }
    const bytes = Buffer.from(box, 'base64url');
    try {
        const decipher = createDecipheriv('aes-256-gcm', keys.box, bytes.subarray(0, ivBytes), {
            authTagLength: tagBytes
        });
        decipher.setAAD(bound(document, header));
        decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
        const plain = Buffer.concat([
            decipher.update(bytes.subarray(ivBytes, bytes.length - tagBytes)),
            decipher.final()
        ]).toString('utf8');
        return new Map(
            (JSON.parse(plain) as [string, [string, string][]][]).map(([section, entries]) => [
                section,
                new Map(entries)
            ])
        );
    } catch {
        throw new Unsealed('damaged');
    }
}

async function derive(passphrase: string, kdf: Sealed['kdf']): Promise<Keys> {
    const root = await hashRaw(passphrase.normalize('NFC'), {
        algorithm: argon2id,
        memoryCost: kdf.memoryKiB,
        timeCost: kdf.passes,
        parallelism: kdf.lanes,
        outputLen: keyBytes,
        salt: Buffer.from(kdf.salt, 'base64url')
    });
    const sub = (label: string): Buffer =>
        Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), `portico export ${label}`, keyBytes));
    return { box: sub('box'), check: sub('check').toString('base64url') };
}

/** A digest stands for the document: it may be a hundred megabytes. */
function bound(document: object, header: object): Buffer {
    return digestOf([header, document]);
}

function digest(text: string): Buffer {
    return createHash('sha256').update(text).digest();
}
