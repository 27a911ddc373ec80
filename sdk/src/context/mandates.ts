/** Mandates: a person lets a plugin call certain routes later, when that person is not there. */
import type { Actor } from '../routes/route.ts';

/** What a mandate is for. */
export interface MandateOptions {
    /** What the giver reads among the API tokens, where the mandate can be revoked: 1 to 100 characters. */
    readonly title: string;
    /**
     * Ids of routes, as in the catalogue: 1 to 100. The giver must be able to call each of them now. A route of the plugin's own, as `<plugin>.<id>`, needs no
     * capability and cannot be called by the mandate: it says what the plugin itself does in the giver's name, and `actor.can` says whether it still may.
     */
    readonly routes: readonly string[];
    /** Left out: until it is ended. */
    readonly expiresAt?: Date;
}

/** `ctx.mandates`. Needs the capability `api` for the routes, except those of the plugin's own. */
export interface MandatesService {
    /**
     * Makes a mandate of the person who asks. Call it in a route with `stepUp: true`, with the actor of the request; keep the id.
     *
     * @throws FORBIDDEN 40300 for an API token, or a route that the actor or the plugin may not call; STEP_UP_REQUIRED 40301 for a session that is
     * not fresh; VALIDATION_FAILED 40001
     */
    give(actor: Actor, mandate: MandateOptions): Promise<{ readonly id: number }>;
    /**
     * Works in the giver's name. The actor is good for `ctx.api`, `ctx.audit` and `ctx.task`, for the mandate's routes alone, until `work` ends, and 24 hours
     * at most. What the giver may not do now, it may not; routes that need a fresh session never answer it.
     *
     * @throws TOKEN_REVOKED 40103 when the mandate was ended, revoked or has expired, or the giver is disabled; also from a call that `work` makes then
     */
    use<T>(id: number, work: (actor: Actor) => Promise<T>): Promise<T>;
    /** Ends a mandate of this plugin. One that has ended stays as it is. */
    end(id: number): Promise<void>;
}
