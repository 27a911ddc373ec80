/** Builds what restic needs for a repository, after the panel has let the plugin reach the host. */
import { errors, isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { type Connection, hostsOf, type Secrets } from './connection.ts';
import { buildTarget, type Target } from './target.ts';

const askpassName = 'askpass';
const askpassScript = '#!/bin/sh\nexec cat login\n';

/** Limits of a repository. */
export interface Limits {
    readonly uploadKiBps: number | null;
    readonly downloadKiBps: number | null;
}

/** Builds the address and the environment with which restic reaches a target. */
export class Targets {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Resolves the host, and builds the target with the address where the program takes one.
     *
     * @param other - the repository that this one is copied to
     * @throws TARGET_UNREACHABLE 50350 for a name without an address; CAPABILITY_MISSING 50305 for one that may not be reached
     */
    async build(
        connection: Connection,
        secrets: Secrets,
        limits: Limits = { uploadKiBps: null, downloadKiBps: null },
        other?: Connection
    ): Promise<Target> {
        const addresses = await Promise.all(hostsOf(connection, secrets).map((host) => this.#resolve(host)));
        if (connection.type === 'sftp' && secrets.loginPassword !== undefined) {
            await this.#writeAskpass();
        }
        return buildTarget(connection, secrets, {
            askpass: `${this.#ctx.dataDir}/${askpassName}`,
            address: addresses[0]?.[0],
            suffix: other === undefined ? '' : '-from',
            byRclone: other?.type === connection.type,
            uploadKiBps: limits.uploadKiBps,
            downloadKiBps: limits.downloadKiBps
        });
    }

    async #resolve(host: string): Promise<readonly string[]> {
        try {
            return await this.#ctx.resolve(host);
        } catch (error) {
            if (isFailure(error) && error.code !== errors.notFound().code) {
                throw error;
            }
            throw fail.TARGET_UNREACHABLE({ message: (error as Error).message });
        }
    }

    /** ssh runs a program to ask for a password; this one prints a private file of the call. */
    async #writeAskpass(): Promise<void> {
        const files = this.#ctx.files(this.#ctx.dataDir);
        if ((await files.stat(askpassName).catch(() => null)) === null) {
            await using file = await files.open(`${askpassName}.new`, 'w', 0o700);
            await file.writeFile(askpassScript);
            await file.sync();
            await files.move(`${askpassName}.new`, askpassName, { replace: true });
        }
    }
}
