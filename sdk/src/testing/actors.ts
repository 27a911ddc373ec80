/** Who asks in a test: people with roles, or with exactly the permissions that the test names. */
import { boundaryErrors } from '../boundary/failures.ts';
import type { Asker, PlainActor } from '../boundary/protocol.ts';
import { createFailure } from '../errors.ts';
import type { Actor, AuditDetail } from '../route.ts';
import type { TestManifest } from './manifest.ts';

/** One of the fixed roles, nobody, or somebody by hand. Permissions without a colon are the plugin's own. */
export type Who =
    | 'admin'
    | 'operator'
    | 'viewer'
    | 'anonymous'
    | {
          /** Default `tester`. The same name is the same person. */
          readonly username?: string;
          readonly role?: 'admin' | 'operator' | 'viewer';
          /** Instead of those of the role. */
          readonly permissions?: readonly string[];
          /** Asks by an API token. */
          readonly token?: boolean;
          /** The session proved itself lately, as routes with `stepUp` want; default true. */
          readonly fresh?: boolean;
      };

/** A person as the test's host knows them. */
export interface Caller {
    readonly plain: PlainActor;
    readonly fresh: boolean;
    /** Calls of plugins that led here. */
    readonly depth: number;
    /** Aborts when the session ends. */
    readonly ended: AbortSignal;
    can(permission: string): boolean;
}

interface Held {
    readonly caller: Caller;
    readonly ip: string | null;
    readonly requestId: string;
    readonly audit: ((detail: AuditDetail) => void) | null;
}

/** Everybody who asked in one test, and the handles under which the plugin knows them. */
export class People {
    readonly #manifest: TestManifest;
    /** Permissions of the panel's own that its admin has. */
    readonly #panel: () => readonly string[];
    readonly #ids = new Map<string, number>();
    readonly #sessions = new Map<string, AbortController>();
    readonly #held = new Map<number, Held>();
    #next = 1;

    constructor(manifest: TestManifest, panel: () => readonly string[]) {
        this.#manifest = manifest;
        this.#panel = panel;
    }

    /** Permissions of the plugin, `read` and `write` included. */
    get permissions(): readonly string[] {
        return [...new Set(['read', 'write', ...Object.keys(this.#manifest.permissions ?? {})])];
    }

    caller(who: Who): Caller {
        if (who === 'anonymous') {
            return this.#make(
                {
                    kind: 'anonymous',
                    id: null,
                    username: null,
                    role: null,
                    tokenId: null,
                    permissions: [],
                    key: 'anonymous',
                    all: false
                },
                false
            );
        }
        const {
            username = typeof who === 'string' ? who : 'tester',
            role,
            permissions,
            token = false,
            fresh = true
        } = typeof who === 'string' ? { role: who } : who;
        const id = this.#ids.get(username) ?? this.#ids.size + 1;
        this.#ids.set(username, id);
        const named = permissions ?? (role === undefined ? [] : this.#permissionsOf(role));
        return this.#make(
            {
                kind: token ? 'token' : 'user',
                id,
                username,
                role: role ?? null,
                tokenId: token ? id : null,
                permissions: named.map((each) =>
                    each.includes(':') ? each : `${this.#manifest.name}:${each}`
                ),
                key: `${token ? 'token' : 'user'}:${id}`,
                all: false
            },
            fresh
        );
    }

    /** Ends the session of a person: streams end, and nothing is done in their name any more. */
    end(key: string): void {
        this.#session(key).abort(
            createFailure({
                code: 40103,
                reason: 'TOKEN_REVOKED',
                message: 'The token has been revoked',
                data: null
            })
        );
    }

    begin(held: Held): Asker {
        const handle = this.#next;
        this.#next += 1;
        this.#held.set(handle, held);
        return { handle, actor: held.caller.plain };
    }

    finish(handle: number): void {
        this.#held.delete(handle);
    }

    /** @throws ACTOR_INVALID 40304 after the end of the request; TOKEN_REVOKED 40103 after that of the session */
    get(handle: number): Held {
        const held = this.#held.get(handle);
        if (held === undefined) {
            throw boundaryErrors.ACTOR_INVALID();
        }
        held.caller.ended.throwIfAborted();
        return held;
    }

    #make(plain: PlainActor, fresh: boolean): Caller {
        return {
            plain,
            fresh,
            depth: 0,
            ended: this.#session(plain.key).signal,
            can: (permission) => plain.permissions.includes(permission)
        };
    }

    #session(key: string): AbortController {
        const session = this.#sessions.get(key) ?? new AbortController();
        this.#sessions.set(key, session);
        return session;
    }

    /** As the panel deals them out: `read` to every role, what else there is to admins, and to whom the manifest names. */
    #permissionsOf(role: 'admin' | 'operator' | 'viewer'): readonly string[] {
        const own = this.permissions.filter((name) => {
            const declared = this.#manifest.permissions?.[name];
            return (
                role === 'admin' ||
                name === 'read' ||
                (typeof declared === 'object' && declared.roles.includes(role))
            );
        });
        return role === 'admin' ? [...own, ...this.#panel()] : own;
    }
}

/** What a contract's fake is shown of who asks. */
export function actorOf({ plain, can }: Caller, plugin: string): Actor {
    const { all: _all, ...shown } = plain;
    return Object.freeze({
        ...shown,
        can: (permission: string) => can(permission.includes(':') ? permission : `${plugin}:${permission}`)
    });
}
