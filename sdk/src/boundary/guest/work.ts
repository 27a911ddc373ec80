/** The state of one generation in its guest runtime, and the rules for when its context may be used. */
import type { Actor } from '../../routes/route.ts';
import { boundaryErrors } from '../failures.ts';
import type { LocalApi } from '../local-api.ts';
import type { HostApi } from '../protocol.ts';
import type { Scope } from '../scope.ts';
import type { GuestActors } from './actors.ts';
import type { Registration } from './registration.ts';

/** The state of a generation in its guest runtime. */
export interface GuestState {
    readonly name: string;
    readonly version: string;
    readonly dataDir: string;
    readonly ending: AbortController;
    readonly registration: Registration;
    readonly actors: GuestActors;
    readonly hostApi: HostApi;
    readonly local: LocalApi;
    readonly scope: Scope;
    readonly requires: readonly string[];
    readonly optional: readonly string[];
    /** Names of the partners that run. */
    readonly present: Set<string>;
    settings: object;
    /** `onStart` has begun. */
    begun: boolean;
    ended: boolean;
}

/** Decides whether a generation may do work now. */
export class GuestWork {
    readonly #state: GuestState;

    constructor(state: GuestState) {
        this.#state = state;
    }

    /** @throws GENERATION_ENDED 50304 once the generation has ended */
    requireAlive(): void {
        if (this.#state.ended) {
            throw boundaryErrors.GENERATION_ENDED({ plugin: this.#state.name });
        }
    }

    /** @throws NOT_STARTED 50306 before `onStart`; GENERATION_ENDED 50304 once the generation has ended */
    requireStarted(member: string): void {
        this.requireAlive();
        if (!this.#state.begun) {
            throw boundaryErrors.NOT_STARTED({ plugin: this.#state.name, member });
        }
    }

    /** Makes a function that does the same, but rejects with GENERATION_ENDED 50304 once the generation has ended. */
    guard<I extends unknown[], O>(run: (...input: I) => Promise<O>): (...input: I) => Promise<O> {
        return async (...input) => {
            this.requireAlive();
            return run(...input);
        };
    }

    /** The handle of an actor; null, which stands for the plugin itself, without one. @throws ACTOR_INVALID 40304 */
    handleOf(actor: Actor | undefined): number | null {
        return actor === undefined ? null : this.#state.actors.handleOf(actor);
    }
}
