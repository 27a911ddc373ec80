/** The engine's working copies of certificates: files that only the engine reads, in a folder that may not survive a reboot. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { CertificatePem } from '../change.ts';
import type { SiteCertificate } from '../site.ts';
import { type EngineFolders, writeForEngine } from './home.ts';

export interface CertificateCopies {
    /**
     * Sees that these certificates lie in the folder, before a load names them.
     * @param all - looks also at those that were written before
     */
    write(
        certificates: Iterable<SiteCertificate>,
        pem: (id: number) => Promise<CertificatePem>,
        all: boolean
    ): Promise<void>;
    /** Removes every other file, after a load that no longer names it. */
    keep(certificates: Iterable<SiteCertificate>): Promise<void>;
}

/**
 * @param folders - where the folder is and who may read it; it exists (`prepareHome`)
 * @param unreadable - told of a certificate whose texts cannot be had; the others are written, and the engine says who misses it
 */
export const createCertificateCopies = (
    folders: EngineFolders,
    unreadable: (id: number, error: unknown) => void
): CertificateCopies => {
    const pathOf = (name: string): string => join(folders.certificates, name);
    const written = new Set<string>();
    return {
        async write(certificates, pem, all) {
            for (const certificate of certificates) {
                const [chain, key] = filesOf(certificate);
                if (written.has(chain) && !all) {
                    continue;
                }

                const texts = await pem(certificate.id).catch((error: unknown) => {
                    unreadable(certificate.id, error);
                    return null;
                });
                if (texts === null) {
                    continue;
                }

                for (const [name, text] of [
                    [key, texts.key],
                    [chain, texts.certificate]
                ] as const) {
                    if ((await readFile(pathOf(name), 'utf8').catch(() => null)) !== text) {
                        writeForEngine(folders, pathOf(name), text);
                    }
                }

                written.add(chain);
            }
        },
        async keep(certificates) {
            const named = new Set([...certificates].flatMap(filesOf));
            for (const name of await readdir(folders.certificates)) {
                if (!named.has(name)) {
                    written.delete(name);
                    await rm(pathOf(name), { force: true, recursive: true });
                }
            }
        }
    };
};

const filesOf = ({ id, fingerprint }: SiteCertificate): readonly [string, string] => [
    `${id}-${fingerprint}.crt`,
    `${id}-${fingerprint}.key`
];
