/** Mandates in a test: kept in memory, in place of the panel's API tokens. */
import { type Call, type Caller, fail, type MandatesPort } from '@portico/core/plugin-runtime';
import { errors } from '@portico/sdk';

/** A mandate that a user gave the plugin. */
export interface GivenMandate {
    readonly id: number;
    readonly plugin: string;
    readonly title: string;
    readonly routes: readonly string[];
    /** Null: it lasts until it is ended. */
    readonly expiresAt: Date | null;
    /** Name of the giver. */
    readonly username: string | null;
    /** It was ended or revoked. */
    readonly ended: boolean;
}

interface Kept extends Omit<GivenMandate, 'ended'> {
    readonly giver: Caller;
    ended: boolean;
}

/** Every mandate of one test. */
export class TestMandates {
    readonly #now: () => number;
    readonly #kept = new Map<number, Kept>();

    /** @internal */
    constructor(now: () => number) {
        this.#now = now;
    }

    /** All that were given, ended ones included. */
    list(): readonly GivenMandate[] {
        return [...this.#kept.values()].map(({ giver: _giver, ...mandate }) => mandate);
    }

    /** Takes one back, as its giver can. */
    revoke(id: number): void {
        const mandate = this.#kept.get(id);
        if (mandate === undefined) {
            throw new Error(`There is no mandate ${id}`);
        }
        mandate.ended = true;
    }

    /** For the panel. @internal */
    async give(call: Call, { expiresAt, ...given }: Parameters<MandatesPort['give']>[1]) {
        if (expiresAt !== null && expiresAt <= this.#now()) {
            throw errors.invalid([{ path: 'expiresAt', message: 'expiresAt must be a time to come' }]);
        }
        const id = this.#kept.size + 1;
        const { actor: giver } = call;
        this.#kept.set(id, {
            ...given,
            id,
            expiresAt: expiresAt === null ? null : new Date(expiresAt),
            username: giver.username,
            giver,
            ended: false
        });
        return { id };
    }

    /** For the panel. @throws TOKEN_REVOKED 40103 @internal */
    use(plugin: string, id: number): Caller {
        const mandate = this.#kept.get(id);
        if (
            mandate === undefined ||
            mandate.plugin !== plugin ||
            mandate.ended ||
            (mandate.expiresAt !== null && mandate.expiresAt.getTime() <= this.#now())
        ) {
            throw fail.TOKEN_REVOKED();
        }
        const { giver, routes } = mandate;
        return {
            ...giver,
            kind: 'mandate',
            tokenId: id,
            sessionId: null,
            plugin: null,
            fresh: false,
            key: `mandate:${id}`,
            can: (permission) => giver.can(permission),
            mandate: { plugin, routes }
        };
    }

    /** The same caller as of now. @throws TOKEN_REVOKED 40103 @internal */
    renew(caller: Caller): Caller {
        return this.use(caller.mandate?.plugin ?? '', caller.tokenId ?? 0);
    }

    /** For the panel. @internal */
    async end(_call: Call, plugin: string, id: number): Promise<void> {
        const mandate = this.#kept.get(id);
        if (mandate?.plugin === plugin) {
            mandate.ended = true;
        }
    }
}
