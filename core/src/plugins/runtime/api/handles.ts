/** Handles: a plugin gets a number for each request, call and task, and can act for the caller only while that lasts. */
import type { AuditDetail } from '@portico/sdk';
import { type Asker, boundaryErrors, type PlainActor } from '@portico/sdk/host';

import type { Caller } from '../../../platform/call.ts';
import { trailOf } from '../../../server/gateway/gate.ts';

/** What a handle stands for. */
export interface Held {
    readonly caller: Caller;
    readonly ip: string | null;
    readonly requestId: string;
    /** Id of the panel's route that the caller used; absent where no route of the panel was used. */
    readonly route?: string;
    /** How many calls of plugins led here. */
    readonly depth: number;
    /** Whether the route that the caller used asks for a fresh session. */
    readonly stepUp?: boolean;
    /** Adds to the audit entry of the request; null where there is none. */
    readonly audit: ((detail: AuditDetail) => void) | null;
    /** Runs work as a part of the request that the handle stands for: it passes the closed gates of the plugins that the request came through. */
    readonly onward: <T>(work: () => T) => T;
}

/** What a handle is begun with. */
type Begun = Omit<Held, 'depth' | 'onward'>;

const plain = new WeakMap<Caller, PlainActor>();
const depths = new WeakMap<Caller, number>();

/** The handles of one generation. */
export class Handles {
    readonly #held = new Map<number, Held>();
    #next = 1;

    /** Begins something; what it returns must be given to `end`. */
    begin(held: Begun, onward = trailOf()): Asker {
        const handle = this.#next;
        this.#next += 1;
        this.#held.set(handle, { ...held, depth: depths.get(held.caller) ?? 0, onward });
        return { handle, actor: plainOf(held.caller) };
    }

    /** Begins something when the plugin first asks for its caller, which most requests never do. */
    lend(held: () => Begun): LentAsker {
        return new LentAsker(this, held);
    }

    end(handle: number): void {
        this.#held.delete(handle);
    }

    /** @throws ACTOR_INVALID 40304 */
    get(handle: number): Held {
        const held = this.#held.get(handle);
        if (held === undefined) {
            throw boundaryErrors.ACTOR_INVALID();
        }
        return held;
    }

    clear(): void {
        this.#held.clear();
    }
}

/** The caller of one request. Its handle is begun on first use, and is worth nothing after `end`. */
export class LentAsker implements Asker {
    readonly #handles: Handles;
    readonly #held: () => Begun;
    readonly #onward = trailOf();
    #begun: Asker | null = null;
    #isOver = false;

    constructor(handles: Handles, held: () => Begun) {
        this.#handles = handles;
        this.#held = held;
    }

    get handle(): number {
        return this.#begin().handle;
    }

    get actor(): PlainActor {
        return this.#begin().actor;
    }

    /** Ends the handle. */
    end(): void {
        this.#isOver = true;
        if (this.#begun !== null) {
            this.#handles.end(this.#begun.handle);
        }
    }

    #begin(): Asker {
        if (this.#begun === null) {
            this.#begun = this.#handles.begin(this.#held(), this.#onward);
            if (this.#isOver) {
                this.end();
            }
        }
        return this.#begun;
    }
}

/** The same person, on whose behalf a plugin acts: never fresh, and one call deeper. */
export function onBehalf(caller: Caller, plugin: string, depth: number): Caller {
    const via: Caller = { ...caller, can: (permission) => caller.can(permission), plugin, fresh: false };
    depths.set(via, depth + 1);
    return via;
}

function plainOf(caller: Caller): PlainActor {
    let found = plain.get(caller);
    if (found === undefined) {
        const { kind, id, username, role, tokenId, token, permissions, key } = caller;
        const all = kind === 'system';
        found = { kind, id, username, role, tokenId, permissions, key, all, ...(token && { token }) };
        plain.set(caller, found);
    }
    return found;
}
