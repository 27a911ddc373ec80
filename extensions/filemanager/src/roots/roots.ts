/** The folders that callers may reach, each with the roles that it is open to. */
import { type Actor, errors, type Files } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { parsePath } from './path.ts';

/** A root with access to its files. */
export interface Root {
    readonly name: string;
    /** Absolute path. */
    readonly folder: string;
    readonly files: Files;
}

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
            .map(({ name, path }) => this.#open(name, path));
    }

    /** The root of a name. @throws NOT_FOUND 40400 for an unknown root, and for one that the actor may not reach */
    of(actor: Actor, name: string): Root {
        const root = this.#ctx.settings.roots.find((one) => one.name === name);
        if (root === undefined || !mayReach(actor, root.roles)) {
            throw errors.notFound('There is no root of that name for you');
        }
        return this.#open(root.name, root.path);
    }

    /** The root and the path of a request. @throws NOT_FOUND 40400, OUTSIDE_ROOT 40350 */
    at(
        actor: Actor,
        { root, path }: { readonly root: string; readonly path: string }
    ): { readonly root: Root; readonly path: string } {
        return { root: this.of(actor, root), path: parsePath(path) };
    }

    /** All roots, for work of the plugin itself. */
    all(): readonly Root[] {
        return this.#ctx.settings.roots.map(({ name, path }) => this.#open(name, path));
    }

    /** A folder that was a root when a row was written. */
    formerRoot(folder: string): Root {
        return this.#open('', folder);
    }

    #open(name: string, path: string): Root {
        const folder = path.replace(/\/+$/, '') || '/';
        return { name, folder, files: this.#ctx.files(folder) };
    }
}

function mayReach(actor: Actor, roles: readonly string[]): boolean {
    return (
        actor.kind === 'system' ||
        actor.role === 'admin' ||
        (actor.role !== null && roles.includes(actor.role))
    );
}
