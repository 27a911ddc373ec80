/**
 * What the engine obtained by itself, read from its own folder. Another user may write there: nothing is followed, nothing is waited for,
 * and only what is a certificate is looked at.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import type { Draft } from '../../engine/change.ts';
import { readCertificates } from './input/pem.ts';
import type { CertificateView } from './schema.ts';

/** No certificate of the panel's own ever gets a number as high. */
export const firstEngineId = 2 ** 52;

/** A certificate that the engine obtained by itself. */
export interface EngineCertificate extends CertificateView {
    /** PEM, the leaf first. */
    readonly chain: string;
}

interface Known {
    readonly stamp: string;
    readonly certificate: EngineCertificate | null;
}

const mostBytes = 256 * 1024;
const mostFiles = 50_000;
const atOnce = 32;

/** @param folder - where the engine keeps what it obtains; null while that is not known */
export class EngineCertificates {
    readonly #folder: () => string | null;
    #known = new Map<string, Known>();

    constructor(folder: () => string | null) {
        this.#folder = folder;
    }

    async list(draft: Pick<Draft, 'hosts' | 'hostOf'>): Promise<readonly EngineCertificate[]> {
        const root = this.#folder();
        const paths = root === null ? [] : await filesBelow(join(root, 'certificates'));
        const next = new Map<string, Known>();
        const queue = [...paths];
        await Promise.all(
            Array.from({ length: atOnce }, async () => {
                for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
                    const found = await this.#read(join(root ?? '', 'certificates'), path);
                    if (found !== null) {
                        next.set(path, found);
                    }
                }
            })
        );
        this.#known = next;
        return [...next.values()]
            .flatMap(({ certificate }) =>
                certificate === null ? [] : [{ ...certificate, usedBy: usersOf(draft, certificate.domains) }]
            )
            .sort((a, b) => a.id - b.id);
    }

    async #read(root: string, path: string): Promise<Known | null> {
        const file = await open(
            join(root, path),
            constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
        ).catch(() => null);
        if (file === null) {
            return null;
        }
        try {
            const stats = await file.stat();
            const stamp = `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
            const before = this.#known.get(path);
            if (before?.stamp === stamp) {
                return before;
            }
            if (!stats.isFile() || stats.size > mostBytes) {
                return null;
            }
            const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes), 0, mostBytes, 0);
            return { stamp, certificate: viewOf(path, buffer.toString('latin1', 0, bytesRead), stats.mtime) };
        } finally {
            await file.close();
        }
    }
}

/** `<issuer>/<name>/<name>.crt`: real folders only. */
async function filesBelow(root: string): Promise<readonly string[]> {
    const folders = async (path: string): Promise<readonly string[]> =>
        (await readdir(path, { withFileTypes: true }).catch(() => []))
            .filter((entry) => entry.isDirectory())
            .map(({ name }) => name);
    const found: string[] = [];
    for (const issuer of await folders(root)) {
        for (const name of await folders(join(root, issuer))) {
            if (found.length === mostFiles) {
                return found;
            }
            found.push(join(issuer, name, `${name}.crt`));
        }
    }
    return found;
}

function viewOf(path: string, text: string, changed: Date): EngineCertificate | null {
    const chain = readCertificates(text);
    const leaf = chain?.[0];
    if (chain === undefined || leaf === undefined) {
        return null;
    }
    const at = changed.toISOString();
    return {
        id: idOf(path),
        name: leaf.names[0] ?? '',
        source: 'engine',
        domains: leaf.names,
        issuer: leaf.issuer,
        serial: leaf.serial,
        notBefore: leaf.notBefore.toISOString(),
        notAfter: leaf.notAfter.toISOString(),
        fingerprint256: leaf.fingerprint,
        dnsProviderId: null,
        acme: null,
        autoRenew: true,
        usedBy: [],
        lastError: null,
        nextAttemptAt: null,
        owner: null,
        version: 1,
        createdAt: at,
        updatedAt: at,
        chain: chain
            .map(({ pem }) => pem)
            .join('\n')
            .concat('\n')
    };
}

/** The same for as long as the engine has a certificate of this name from this authority. */
function idOf(path: string): number {
    return firstEngineId + createHash('sha256').update(path).digest().readUIntBE(0, 6);
}

function usersOf(draft: Pick<Draft, 'hosts' | 'hostOf'>, names: readonly string[]): readonly number[] {
    const ids = names.flatMap((name) => {
        const id = draft.hostOf(name);
        const site = id === undefined ? undefined : draft.hosts.get(id)?.site;
        return id !== undefined && site?.ssl === true && site.sslMode !== 'certificate' ? [id] : [];
    });
    return [...new Set(ids)].sort((a, b) => a - b);
}
