/**
 * The recovery kit: all repositories with their secrets, sealed under a passphrase. It needs neither the panel nor its keys: scrypt
 * (RFC 7914) makes the key, AES-256-GCM seals.
 */
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto';

import type { Connection, Secrets } from '../targets/connection.ts';

/** One repository in a kit. */
export interface KitRepository {
    readonly name: string;
    readonly connection: Connection;
    readonly secrets: Secrets;
}

/** What a kit holds. */
export interface KitContent {
    readonly repositories: readonly KitRepository[];
    readonly plans: readonly { readonly id: number; readonly name: string; readonly repository: string }[];
}

/** A kit as it is given out: what is not sealed says only what it is. */
export interface RecoveryKit {
    readonly format: 'portico-recovery-kit';
    readonly version: 1;
    readonly at: string;
    readonly hostname: string;
    readonly kdf: { readonly name: 'scrypt'; readonly N: number; readonly r: number; readonly p: number };
    /** Base64. */
    readonly salt: string;
    readonly nonce: string;
    readonly tag: string;
    readonly data: string;
}

const cost = { N: 131_072, r: 8, p: 1 } as const;
/** A kit that wants more than this of the machine is not opened. */
const mostMemory = 512 * 1024 * 1024;

/** Seals the content of a recovery kit under a passphrase. */
export function sealKit(
    content: KitContent,
    passphrase: string,
    about: Pick<RecoveryKit, 'at' | 'hostname'>
): RecoveryKit {
    const [salt, nonce] = [randomBytes(16), randomBytes(12)];
    const cipher = createCipheriv('aes-256-gcm', keyOf(passphrase, salt, cost), nonce);
    cipher.setAAD(Buffer.from(JSON.stringify(about)));
    const data = Buffer.concat([cipher.update(JSON.stringify(content), 'utf8'), cipher.final()]);
    return {
        format: 'portico-recovery-kit',
        version: 1,
        at: about.at,
        hostname: about.hostname,
        kdf: { name: 'scrypt', ...cost },
        salt: salt.toString('base64'),
        nonce: nonce.toString('base64'),
        tag: cipher.getAuthTag().toString('base64'),
        data: data.toString('base64')
    };
}

/** Opens a kit. @throws Error that says whether it is no kit, or the passphrase is wrong */
export function openKit(text: string, passphrase: string): KitContent {
    const kit = parsed(text);
    const { N, r, p } = kit.kdf;
    const isKnown =
        kit.format === 'portico-recovery-kit' &&
        kit.version === 1 &&
        kit.kdf.name === 'scrypt' &&
        [N, r, p].every((each) => Number.isSafeInteger(each) && each > 0) &&
        128 * N * r <= mostMemory &&
        p <= 16;
    if (!isKnown) {
        throw new Error('The file is no recovery kit that this version can open');
    }
    const key = keyOf(passphrase, Buffer.from(kit.salt, 'base64'), kit.kdf);
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(kit.nonce, 'base64'), {
        authTagLength: 16
    });
    decipher.setAAD(Buffer.from(JSON.stringify({ at: kit.at, hostname: kit.hostname })));
    decipher.setAuthTag(Buffer.from(kit.tag, 'base64'));
    try {
        const plain = Buffer.concat([decipher.update(Buffer.from(kit.data, 'base64')), decipher.final()]);
        return JSON.parse(plain.toString('utf8')) as KitContent;
    } catch {
        throw new Error('The passphrase does not open the kit, or the kit was changed');
    }
}

function parsed(text: string): RecoveryKit {
    try {
        const found = JSON.parse(text) as RecoveryKit & { readonly data?: unknown };
        // The whole answer of the panel, saved as it came, is taken too.
        const kit = typeof found.data === 'object' ? (found.data as RecoveryKit) : found;
        if (typeof kit?.kdf !== 'object') {
            throw new TypeError('no kit');
        }
        return kit;
    } catch {
        throw new Error('The file is no recovery kit');
    }
}

function keyOf(
    passphrase: string,
    salt: Buffer,
    { N, r, p }: { readonly N: number; readonly r: number; readonly p: number }
): Buffer {
    return scryptSync(passphrase.normalize('NFC'), salt, 32, { N, r, p, maxmem: mostMemory + 1024 * 1024 });
}
