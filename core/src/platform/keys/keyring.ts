/** Keys of the data folder. Every secret is sealed and every signature made under a key derived from one master key with a label of its own. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import {
    closeSync,
    existsSync,
    fsyncSync,
    lstatSync,
    mkdirSync,
    openSync,
    readFileSync,
    renameSync,
    writeSync
} from 'node:fs';
import { dirname, join } from 'node:path';

const masterBytes = 32;
const ivBytes = 12;
const tagBytes = 16;
const version = 'v1.';

/** The keys of a data folder. */
export interface Keyring {
    /** 32 bytes, always the same for one label. */
    derive(label: string): Buffer;
    /** AES-256-GCM under the label's key, as text. */
    seal(label: string, plain: string): string;
    /** @throws Error when the text was not sealed under this label and key. */
    open(label: string, sealed: string): string;
    /** A random secret of the data folder, made at first use: `keys/<name>`, 0600. */
    secret(name: string, bytes: number): Buffer;
}

/** Opens `keys/` below the data folder, and makes the master key at the first start; `fresh: false` says that this cannot be the first. @throws Error when a key file is damaged or readable by others. */
export function createKeyring(dataDir: string, { fresh = true }: { readonly fresh?: boolean } = {}): Keyring {
    const folder = join(dataDir, 'keys');
    if (!fresh && !existsSync(join(folder, 'master'))) {
        throw new Error(
            `${join(folder, 'master')} is missing: without it nothing that is sealed in this data folder can be opened. Put it back from a backup`
        );
    }
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const master = keyFile(join(folder, 'master'), masterBytes);
    const derived = new Map<string, Buffer>();
    const derive = (label: string): Buffer => {
        let key = derived.get(label);
        if (key === undefined) {
            key = Buffer.from(hkdfSync('sha256', master, Buffer.alloc(0), `portico ${label}`, 32));
            derived.set(label, key);
        }
        return key;
    };
    return {
        derive,
        seal(label, plain) {
            const iv = randomBytes(ivBytes);
            const cipher = createCipheriv('aes-256-gcm', derive(`seal ${label}`), iv);
            const sealed = Buffer.concat([
                iv,
                cipher.update(plain, 'utf8'),
                cipher.final(),
                cipher.getAuthTag()
            ]);
            return version + sealed.toString('base64url');
        },
        open(label, sealed) {
            const bytes = Buffer.from(
                sealed.startsWith(version) ? sealed.slice(version.length) : '',
                'base64url'
            );
            if (bytes.length < ivBytes + tagBytes) {
                throw new Error(`A sealed value of ${label} is damaged`);
            }
            const decipher = createDecipheriv(
                'aes-256-gcm',
                derive(`seal ${label}`),
                bytes.subarray(0, ivBytes)
            );
            decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
            return Buffer.concat([
                decipher.update(bytes.subarray(ivBytes, bytes.length - tagBytes)),
                decipher.final()
            ]).toString('utf8');
        },
        secret: (name, bytes) => keyFile(join(folder, name), bytes)
    };
}

function keyFile(path: string, bytes: number): Buffer {
    let key = readKey(path);
    if (key === null) {
        writeKey(path, randomBytes(bytes));
        key = readKey(path);
    }
    if (key?.length !== bytes) {
        throw new Error(`${path} is damaged: it should hold ${bytes} bytes`);
    }
    return key;
}

function readKey(path: string): Buffer | null {
    try {
        const stat = lstatSync(path);
        if (!stat.isFile() || (stat.mode & 0o077) !== 0) {
            throw new Error(`${path} must be a file that only its owner can read (chmod 600)`);
        }
        return readFileSync(path);
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
            return null;
        }
        throw error;
    }
}

/** Durable before it is used: what is sealed under a key that a power cut took back would be lost. */
function writeKey(path: string, key: Buffer): void {
    const temporary = `${path}.new`;
    const file = openSync(temporary, 'w', 0o600);
    writeSync(file, key);
    fsyncSync(file);
    closeSync(file);
    renameSync(temporary, path);
    const folder = openSync(dirname(path), 'r');
    fsyncSync(folder);
    closeSync(folder);
}
