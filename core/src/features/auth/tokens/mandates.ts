/**
 * Mandates: a person lets a plugin call certain routes later, in that person's absence. A mandate is a row among the person's API tokens, listed
 * and revoked there, but it has no secret: only the plugin that holds it can use it, and never for more than the person may at that moment.
 */
import { randomUUID } from 'node:crypto';

import type { Call, Caller } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import { type ApiToken, never, viewOf } from './api-token.ts';
import type { ApiTokens } from './api-tokens.ts';

/** What a mandate is made of. */
export interface NewMandate {
    readonly plugin: string;
    /** What the person reads in the list of tokens. */
    readonly title: string;
    readonly routes: readonly string[];
    /** Milliseconds since 1970; null: until it is ended. */
    readonly expiresAt: number | null;
}

/** What {@link Mandates} needs. */
export interface MandatesDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly apiTokens: ApiTokens;
    readonly authenticator: { holder(token: ApiToken): Caller };
}

const mostOfOneUser = 500;

/** Mandates: given, used and ended. */
export class Mandates {
    readonly #in: MandatesDependencies;

    constructor(dependencies: MandatesDependencies) {
        this.#in = dependencies;
    }

    /** Makes a mandate of the person who calls. @throws VALIDATION_FAILED 40001 */
    async give(
        call: Call,
        { plugin, title, routes, expiresAt }: NewMandate
    ): Promise<{ readonly id: number }> {
        const { db, clock, apiTokens } = this.#in;
        const now = clock.now();
        const userId = call.actor.id ?? 0;
        if (expiresAt !== null && !(expiresAt > now)) {
            throw invalid({ path: 'expiresAt', message: 'expiresAt must be a time to come' });
        }
        return db.write(async (tx) => {
            const own = apiTokens.list(userId).filter((each) => each.plugin !== null);
            if (own.length >= mostOfOneUser) {
                throw invalid({ path: 'title', message: `There are ${mostOfOneUser} mandates already` });
            }
            const mandate = await apiTokens.add(tx, {
                userId,
                name: title,
                hash: `mandate ${randomUUID()}`, // of no secret: no bearer has it
                permissions: [],
                createdAt: now,
                expiresAt: expiresAt ?? never,
                lastUsedAt: null,
                revokedAt: null,
                plugin,
                routes,
                clientId: null,
                resource: null
            });
            return call.complete(tx, {
                action: 'create',
                resource: 'mandates',
                resourceId: mandate.id,
                before: null,
                after: viewOf(mandate),
                reply: { id: mandate.id }
            });
        });
    }

    /** The person behind a mandate, as of now. @throws TOKEN_REVOKED 40103 when it ended, or the person may not log in any more */
    use(plugin: string, id: number): Caller {
        const mandate = this.#in.apiTokens.byId(id);
        if (mandate?.plugin !== plugin) {
            throw fail.TOKEN_REVOKED();
        }
        this.#in.apiTokens.touch(mandate, this.#in.clock.now());
        return this.#in.authenticator.holder(mandate);
    }

    /** Ends a mandate of a plugin. One that has ended stays as it is. */
    async end(call: Call, plugin: string, id: number): Promise<void> {
        const { db, apiTokens } = this.#in;
        await db.write(async (tx) => {
            const mandate = apiTokens.byId(id);
            if (mandate?.plugin !== plugin || mandate.revokedAt !== null) {
                return;
            }
            await apiTokens.end(tx, [mandate]);
            await call.complete(tx, {
                action: 'delete',
                resource: 'mandates',
                resourceId: id,
                before: viewOf(mandate),
                after: null,
                reply: null
            });
        });
    }
}
