/** Removal for good: of the entry, and of the versions of what it was. */
import { removeTree } from '../files/tree.ts';
import type { Quotas } from '../roots/quotas.ts';
import { refuseReadOnly, type Root } from '../roots/roots.ts';
import type { Versions } from '../versions/versions.ts';

/** Removes entries of which nothing is kept. */
export class Removal {
    readonly #parts: { readonly quotas: Quotas; readonly versions: Versions };

    constructor(parts: { readonly quotas: Quotas; readonly versions: Versions }) {
        this.#parts = parts;
    }

    /** Removes a file, or a folder with its content, and their versions. @throws NOT_FOUND 40400, READ_ONLY 40352 */
    async forGood(root: Root, path: string, progress: Parameters<typeof removeTree>[2]): Promise<void> {
        refuseReadOnly(root);
        await removeTree(root.files, path, progress);
        this.#parts.quotas.freed(root);
        await this.#parts.versions.forget(root, path);
    }
}
