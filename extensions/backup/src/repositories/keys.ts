/** New passwords of repositories. */
import { randomBytes } from 'node:crypto';

import type { RepositoryRow } from '../entities.ts';
import type { Restic } from '../restic/restic.ts';
import type { Target } from '../targets/target.ts';
import type { Repositories } from './repositories.ts';

/** Adds, changes and removes the passwords of a repository. */
export class Keys {
    readonly #restic: Restic;
    readonly #repositories: Repositories;

    constructor(restic: Restic, repositories: Repositories) {
        this.#restic = restic;
        this.#repositories = repositories;
    }

    /**
     * Adds a key with a new password, stores that, and removes every other key. Cut off at any moment, the stored password opens the
     * repository; the next rotation removes what this one left.
     */
    async rotate(row: RepositoryRow, signal: AbortSignal): Promise<{ readonly removed: number }> {
        const before = await this.#repositories.target(row);
        const password = randomBytes(24).toString('base64url');
        await this.#restic.run(
            { ...before, files: { ...before.files, 'new-password': password } },
            ['key', 'add', '--new-password-file=new-password'],
            { signal }
        );
        const after: Target = { ...before, password };
        await this.#restic.run(after, ['cat', 'config', '--no-lock'], { signal });
        await this.#repositories.storePassword(row, password);
        const { documents } = await this.#restic.run(after, ['key', 'list']);
        const others = documents.filter(({ current }) => current !== true).map(({ id }) => String(id));
        for (const id of others) {
            await this.#restic.run(after, ['key', 'remove', id]);
        }
        return { removed: others.length };
    }
}
