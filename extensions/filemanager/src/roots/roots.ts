/** The folders that people may reach, each by those roles that it names. */
import { type Actor, errors, type Files } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { parsePath } from './path.ts';

/** A root that somebody may reach. */
export interface Root {
    readonly name: string;
    /** Absolute. */
    readonly folder: string;
    readonly files: Files;
}

export class Roots {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Roots that this actor may reach. */
    visible(actor: Actor): readonly Root[] {
        return this.#ctx.settings.roots
            .filter(({ roles }) => reaches(actor, roles))
            .map(({ name, path }) => this.#open(name, path));
    }

    /** @throws NOT_FOUND 40400 both for an unknown root and for one of other roles */
    of(actor: Actor, name: string): Root {
        const root = this.#ctx.settings.roots.find((one) => one.name === name);
        if (root === undefined || !reaches(actor, root.roles)) {
            throw errors.notFound('There is no root of that name for you');
        }
        return this.#open(root.name, root.path);
    }

    /** A root and one path below it. */
    at(
        actor: Actor,
        { root, path }: { readonly root: string; readonly path: string }
    ): { readonly root: Root; readonly path: string } {
        return { root: this.of(actor, root), path: parsePath(path) };
    }

    /** Every root that is set, for work of the plugin itself. */
    all(): readonly Root[] {
        return this.#ctx.settings.roots.map(({ name, path }) => this.#open(name, path));
    }

    /** A folder that was a root once. */
    formerly(folder: string): Root {
        return this.#open('', folder);
    }

    #open(name: string, path: string): Root {
        const folder = path.replace(/\/+$/, '') || '/';
        return { name, folder, files: this.#ctx.files(folder) };
    }
}

function reaches(actor: Actor, roles: readonly string[]): boolean {
    return (
        actor.kind === 'system' ||
        actor.role === 'admin' ||
        (actor.role !== null && roles.includes(actor.role))
    );
}
