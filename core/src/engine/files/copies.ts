import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { CertificatePem } from '../change.ts';
import type { SiteCertificate } from '../site.ts';
import { type EngineFolders, writeForEngine } from './home.ts';

/** The engine's copies of certificates: files that only the engine reads, in a folder that may be gone after a reboot. */
export class CertificateCopies {
    readonly #folders: EngineFolders;
    readonly #unreadable: (id: number, error: unknown) => void;
    /** Names of the chain files that this process has written. */
    readonly #written = new Set<string>();
    /** Names of all files that the folder holds; null: not looked at yet, or a file of it could not be removed. */
    #kept: ReadonlySet<string> | null = null;

    /**
     * @param folders - where the folder is and who may read it; it exists (`prepareHome`)
     * @param unreadable - called for a certificate whose PEM texts cannot be read; the others are written, and the engine says who misses it
     */
    constructor(folders: EngineFolders, unreadable: (id: number, error: unknown) => void) {
        this.#folders = folders;
        this.#unreadable = unreadable;
    }

    /**
     * Writes these certificates into the folder, before a load names them.
     * @param all - compares also those that were written before
     */
    async write(
        certificates: Iterable<SiteCertificate>,
        pem: (id: number) => Promise<CertificatePem>,
        all: boolean
    ): Promise<void> {
        for (const certificate of certificates) {
            const [chain, key] = filesOf(certificate);
            if (this.#written.has(chain) && !all) {
                continue;
            }

            const texts = await pem(certificate.id).catch((error: unknown) => {
                this.#unreadable(certificate.id, error);
                return null;
            });
            if (texts !== null) {
                await this.#place(key, texts.key);
                await this.#place(chain, texts.certificate);
                this.#written.add(chain);
            }
        }
    }

    /** Removes every other file, after a load that no longer names it. */
    async keep(certificates: Iterable<SiteCertificate>): Promise<void> {
        const named = new Set([...certificates].flatMap(filesOf));
        if (this.#kept !== null && this.#kept.size === named.size && named.isSubsetOf(this.#kept)) {
            return;
        }

        this.#kept = null;
        for (const name of await readdir(this.#folders.certificates)) {
            if (!named.has(name)) {
                this.#written.delete(name);
                await rm(this.#pathOf(name), { force: true, recursive: true });
            }
        }

        this.#kept = named;
    }

    async #place(name: string, text: string): Promise<void> {
        const path = this.#pathOf(name);
        if ((await readFile(path, 'utf8').catch(() => null)) !== text) {
            this.#kept = null;
            writeForEngine(this.#folders, path, text);
        }
    }

    #pathOf(name: string): string {
        return join(this.#folders.certificates, name);
    }
}

const filesOf = ({ id, fingerprint }: SiteCertificate): readonly [string, string] => [
    `${id}-${fingerprint}.crt`,
    `${id}-${fingerprint}.key`
];
