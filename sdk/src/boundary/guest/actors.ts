/** Actors in a plugin's guest runtime: plain objects whose handle is kept outside them, so that a copy of an actor is not accepted. */
import type { Actor } from '../../routes/route.ts';
import { boundaryErrors } from '../failures.ts';
import type { Asker, PlainActor } from '../protocol.ts';

const permissionSets = new WeakMap<PlainActor, ReadonlySet<string>>();

/** The actors of the requests that a plugin handles. */
export class GuestActors {
    readonly #plugin: string;
    readonly #handles = new WeakMap<Actor, number>();

    constructor(plugin: string) {
        this.#plugin = plugin;
    }

    /** The actor of a request, a socket, a call or a task. */
    of({ actor: plain, handle }: Asker): Actor {
        let permissions = permissionSets.get(plain);
        if (permissions === undefined) {
            permissions = new Set(plain.permissions);
            permissionSets.set(plain, permissions);
        }
        const allowed = permissions;
        const { kind, id, username, role, tokenId, token, key } = plain;
        const actor: Actor = Object.freeze({
            kind,
            id,
            username,
            role,
            tokenId,
            ...(token === undefined ? {} : { token }),
            permissions: plain.permissions,
            key,
            can: (permission: string) =>
                plain.all ||
                allowed.has(permission.includes(':') ? permission : `${this.#plugin}:${permission}`)
        });
        this.#handles.set(actor, handle);
        return actor;
    }

    /** The handle by which the host knows an actor. @throws ACTOR_INVALID 40304 for one that did not come from the host */
    handleOf(actor: Actor): number {
        const handle = typeof actor === 'object' && actor !== null ? this.#handles.get(actor) : undefined;
        if (handle === undefined) {
            throw boundaryErrors.ACTOR_INVALID();
        }
        return handle;
    }
}
