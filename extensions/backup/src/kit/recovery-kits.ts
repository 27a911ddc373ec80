/** Makes recovery kits. */
import { hostname } from 'node:os';

import type { Plans } from '../plans/plans.ts';
import type { Repositories } from '../repositories/repositories.ts';
import { connectionIn } from '../repositories/stored.ts';
import { type RecoveryKit, sealKit } from './sealed-kit.ts';

/** Collects what a kit holds. */
export class RecoveryKits {
    readonly #repositories: Repositories;
    readonly #plans: Plans;

    constructor(repositories: Repositories, plans: Plans) {
        this.#repositories = repositories;
        this.#plans = plans;
    }

    /** A kit of all repositories as they are now. */
    async make(passphrase: string): Promise<RecoveryKit> {
        const rows = await this.#repositories.list();
        const repositories = await Promise.all(
            rows.map(async (row) => ({
                name: row.name,
                connection: connectionIn(row),
                secrets: await this.#repositories.secrets(row)
            }))
        );
        const plans = (await this.#plans.list()).map(({ id, name, repositoryId }) => ({
            id,
            name,
            repository: rows.find((row) => row.id === repositoryId)?.name ?? ''
        }));
        return sealKit({ repositories, plans }, passphrase, {
            at: new Date().toISOString(),
            hostname: hostname()
        });
    }
}
