/** The people of a test: one for each role, or with exactly the permissions that the test names. */
import {
    type Authenticator,
    type Caller,
    fail,
    type fixedRoles,
    type Permissions,
    requireAccess,
    requireFresh
} from '@portico/core/plugin-runtime';

type Role = (typeof fixedRoles)[number];

/** Who asks: one of the fixed roles, a caller without a login, or a person made by hand. Permissions without a colon are the plugin's own. */
export type Who =
    | Role
    | 'anonymous'
    | {
          /** Default `tester`. The same name is the same person. */
          readonly username?: string;
          readonly role?: Role;
          /** Instead of those of the role. */
          readonly permissions?: readonly string[];
          /** Asks by an API token. */
          readonly token?: boolean;
          /** Asks by a token of OAuth that is good below this path of the plugin alone, such as `/mcp`. It has the permissions named, and is never fresh. */
          readonly oauth?: string;
          /** The session proved itself lately, as routes with `stepUp` want; default true. */
          readonly fresh?: boolean;
      };

/** A caller, with the bearer token of the requests. */
export interface Person {
    readonly caller: Caller;
    /** Null for a caller without a login. */
    readonly token: string | null;
}

/** The users who call in one test. Stands where the panel has its users and sessions. */
export class People implements Authenticator {
    readonly anonymous: Caller;
    readonly #plugin: string;
    readonly #permissions: Permissions;
    readonly #ids = new Map<string, number>();
    readonly #tokens = new Map<string, Caller>();
    readonly #ended = new Set<string>();
    readonly #watchers = new Set<{ readonly key: string; readonly ended: () => void }>();

    constructor(plugin: string, permissions: Permissions) {
        this.#plugin = plugin;
        this.#permissions = permissions;
        this.anonymous = this.#caller('anonymous', null, null, () => [], { fresh: false });
    }

    /** A person, whose requests carry a token of their own. */
    person(who: Who): Person {
        if (who === 'anonymous') {
            return { caller: this.anonymous, token: null };
        }
        const given = typeof who === 'string' ? { role: who, username: who } : who;
        const { username = 'tester', role = null, oauth, fresh = oauth === undefined } = given;
        const token = given.token === true || oauth !== undefined;
        const id = this.#ids.get(username) ?? this.#ids.size + 1;
        this.#ids.set(username, id);
        const named = given.permissions?.map((each) =>
            each.includes(':') ? each : `${this.#plugin}:${each}`
        );
        const permissions = (): readonly string[] =>
            named ?? (role === null ? [] : this.#permissions.of(role));
        const caller = this.#caller(token ? 'token' : 'user', id, username, permissions, {
            role,
            fresh,
            tokenId: token ? id : null,
            ...(token ? { token: { name: username, expiresAt: '2099-01-01T00:00:00.000Z' } } : {}),
            sessionId: token ? null : id,
            ...(oauth === undefined ? {} : { resource: `/api/plugins/${this.#plugin}${oauth}` })
        });
        const bearer = `test-${this.#tokens.size + 1}`;
        this.#tokens.set(bearer, caller);
        return { caller, token: bearer };
    }

    /** Ends the session of a person: what is open ends, and nothing is done in their name any more. */
    end({ key }: Caller): void {
        this.#ended.add(key);
        for (const watcher of [...this.#watchers].filter((each) => each.key === key)) {
            this.#watchers.delete(watcher);
            watcher.ended();
        }
    }

    /** The caller, when the session still lasts. @throws TOKEN_REVOKED 40103 */
    renew(caller: Caller): Caller {
        if (this.#ended.has(caller.key)) {
            throw fail.TOKEN_REVOKED();
        }
        return caller;
    }

    bearer(token: string): Caller {
        const caller = this.#tokens.get(token);
        if (caller === undefined) {
            throw fail.TOKEN_INVALID();
        }
        return this.renew(caller);
    }

    ticket(): Promise<Caller> {
        return Promise.reject(fail.TOKEN_INVALID());
    }

    admit(caller: Caller, route: Parameters<Authenticator['admit']>[1]): void {
        if (caller.id === null && caller.kind === 'anonymous') {
            throw fail.UNAUTHENTICATED();
        }
        requireAccess(caller, route);
        requireFresh(caller, route);
    }

    onEnd({ key }: Caller, _route: unknown, ended: () => void): () => void {
        const watcher = { key, ended };
        this.#watchers.add(watcher);
        return () => this.#watchers.delete(watcher);
    }

    #caller(
        kind: Caller['kind'],
        id: number | null,
        username: string | null,
        permissions: () => readonly string[],
        more: Partial<Caller>
    ): Caller {
        return {
            kind,
            id,
            username,
            role: null,
            tokenId: null,
            sessionId: null,
            plugin: null,
            fresh: true,
            key: id === null ? kind : `${kind}:${id}`,
            get permissions() {
                return permissions();
            },
            can: (permission) => permissions().includes(permission),
            ...more
        };
    }
}
