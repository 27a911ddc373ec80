/** The folders that callers may reach, each with the roles that it is open to. */
import { type Actor, errors, type Files } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { parsePath } from './path.ts';
import { readOnlyFiles } from './read-only.ts';

/** A root with access to its files. */
export interface Root {
    readonly name: string;
    /** Absolute path. */
    readonly folder: string;
    /** Refuses every change where the root is read-only. */
    readonly files: Files;
    readonly readOnly: boolean;
    /** Null without a limit. */
    readonly quotaBytes: number | null;
    /** Earlier contents of a file that are kept; 0: none. */
    readonly versions: number;
}

/** A path below a root. */
export interface Place {
    readonly root: Root;
    readonly path: string;
}

/** The absolute path of a place. */
export const absolute = ({ root, path }: Place): string =>
    `${root.folder === '/' ? '' : root.folder}/${path}`;

type RootSettings = Ctx['settings']['roots'][number];

/** The roots of the settings. */
export class Roots {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The roots that an actor may reach. */
    visible(actor: Actor): readonly Root[] {
        return this.#ctx.settings.roots
            .filter(({ roles }) => mayReach(actor, roles))
            .map((one) => this.#open(one));
    }

    /** The root of a name. @throws NOT_FOUND 40400 for an unknown root, and for one that the actor may not reach */
    of(actor: Actor, name: string): Root {
        const root = this.#ctx.settings.roots.find((one) => one.name === name);
        if (root === undefined || !mayReach(actor, root.roles)) {
            throw errors.notFound('There is no root of that name for you');
        }
        return this.#open(root);
    }

    /** The root of a name, for a change. @throws READ_ONLY 40352, and as `of` */
    forChange(actor: Actor, name: string): Root {
        const root = this.of(actor, name);
        refuseReadOnly(root);
        return root;
    }

    /** The root and the path of a request. @throws NOT_FOUND 40400, OUTSIDE_ROOT 40350 */
    at(actor: Actor, { root, path }: { readonly root: string; readonly path: string }): Place {
        return { root: this.of(actor, root), path: parsePath(path) };
    }

    /** All roots, for work of the plugin itself. */
    all(): readonly Root[] {
        return this.#ctx.settings.roots.map((one) => this.#open(one));
    }

    /** A folder that was a root when a row was written. It is read-only where all roots of the settings that are this folder are. */
    formerRoot(folder: string): Root {
        const now = this.all().filter((one) => one.folder === folder);
        return (
            now.find(({ readOnly }) => !readOnly) ??
            now[0] ??
            this.#open({ name: '', path: folder, roles: [], readOnly: false, quotaBytes: null, versions: 0 })
        );
    }

    #open({ name, path, readOnly, quotaBytes, versions }: RootSettings): Root {
        const folder = path.replace(/\/+$/, '') || '/';
        const files = this.#ctx.files(folder);
        return {
            name,
            folder,
            files: readOnly ? readOnlyFiles(files, name) : files,
            readOnly,
            quotaBytes,
            versions
        };
    }
}

/** Refuses a change of a read-only root before the change begins. @throws READ_ONLY 40352 */
export function refuseReadOnly({ name, readOnly }: Root): void {
    if (readOnly) {
        throw fail.READ_ONLY({ root: name });
    }
}

function mayReach(actor: Actor, roles: readonly string[]): boolean {
    return (
        actor.kind === 'system' ||
        actor.role === 'admin' ||
        (actor.role !== null && roles.includes(actor.role))
    );
}
