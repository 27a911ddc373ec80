/** Finds the caller of each request and decides what the caller may do. A token is verified once and remembered; session and account are looked up each time. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Caller } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import { fail } from '../../platform/errors.ts';
import { requireAccess, requireFresh } from '../../server/http/access.ts';
import type { Authenticator, Origin } from '../../server/http/ports.ts';
import type { Route } from '../../server/http/route.ts';
import type { SecondFactors } from './login/second-factor.ts';
import { isAccessToken, type OAuthTokens } from './oauth/tokens.ts';
import type { Account, Accounts, AuthSettings } from './ports.ts';
import type { ApiToken } from './tokens/api-token.ts';
import { type ApiTokens, tokenPrefix } from './tokens/api-tokens.ts';
import type { ConsoleTokens } from './tokens/console-tokens.ts';
import type { TokenSigner } from './tokens/jwt.ts';
import type { Session, Sessions } from './tokens/sessions.ts';
import type { Tickets } from './tokens/tickets.ts';

/** What `PanelAuthenticator` is built from. */
export interface AuthenticatorDependencies {
    readonly clock: Clock;
    readonly accounts: Accounts;
    readonly settings: AuthSettings;
    readonly signer: TokenSigner;
    readonly sessions: Sessions;
    readonly apiTokens: ApiTokens;
    readonly oauthTokens: OAuthTokens;
    readonly secondFactors: SecondFactors;
    readonly tickets: Tickets;
    readonly consoleTokens: ConsoleTokens;
}

/** A token that was verified: the same text need not be verified again. */
interface Verified {
    readonly session: Session;
    readonly expiresAt: number;
}

/** A caller as it was built for an account; rebuilt when the account is another object. */
interface Built {
    readonly account: Account;
    readonly caller: Caller;
}

interface Watcher {
    readonly caller: Caller;
    readonly route: Route;
    readonly ended: () => void;
}

const minuteMs = 60_000;
const generation = 5_000;
const sweepMs = 10_000;
/** A clock that was set back a little does not make a new session stale. */
const leewayMs = minuteMs;

const anonymous: Caller = Object.freeze({
    kind: 'anonymous',
    id: null,
    username: null,
    role: null,
    tokenId: null,
    permissions: Object.freeze([]),
    key: 'anonymous',
    can: () => false,
    sessionId: null,
    plugin: null,
    fresh: false
});

/** The authenticator of every server. */
export class PanelAuthenticator implements Authenticator {
    readonly anonymous = anonymous;
    readonly #in: AuthenticatorDependencies;
    /** Two generations make a bounded cache without counting: what is used moves to the young one, the old one is dropped whole. */
    #young = new Map<string, Verified>();
    #old = new Map<string, Verified>();
    readonly #built = new WeakMap<Session | ApiToken, Built>();
    readonly #watchers = new Map<number, Set<Watcher>>();
    #sweep: NodeJS.Timeout | null = null;
    /** Leaves the context of the caller: a timer that began in a plugin's context would end with the plugin, and no session would be checked any more. */
    readonly #outside = AsyncLocalStorage.snapshot();

    constructor(dependencies: AuthenticatorDependencies) {
        this.#in = dependencies;
        dependencies.accounts.onChange((id) => this.#recheck(id));
        dependencies.sessions.onEnd(({ userId }) => this.#recheck(userId));
        dependencies.apiTokens.onEnd(({ userId }) => this.#recheck(userId));
    }

    bearer(token: string, from: Origin): Caller {
        if (token.startsWith(tokenPrefix)) {
            return this.#ofToken(this.#in.apiTokens.find(token), true);
        }
        if (isAccessToken(token)) {
            return this.#ofToken(this.#in.oauthTokens.holder(token), true);
        }
        if (this.#in.consoleTokens.claims(token)) {
            return this.#in.consoleTokens.take(token, from.ip);
        }
        const verified = this.#young.get(token) ?? this.#promote(token) ?? this.#verify(token);
        if (verified.expiresAt <= this.#in.clock.now()) {
            throw fail.TOKEN_EXPIRED();
        }
        return this.#ofSession(verified.session, true);
    }

    async ticket(ticket: string, path: string, _from: Origin): Promise<Caller> {
        const taken = this.#in.tickets.take(ticket, path);
        return this.#now(taken.sessionId, taken.tokenId);
    }

    /** The caller as of now, for work that goes on after the request. @throws TOKEN_REVOKED 40103 */
    renew(caller: Caller): Caller {
        return caller.id === null ? caller : this.#now(caller.sessionId, caller.tokenId);
    }

    /** The person behind a mandate, as of now. @throws TOKEN_REVOKED 40103 */
    holder(mandate: ApiToken): Caller {
        return this.#ofToken(mandate, false);
    }

    admit(caller: Caller, route: Route): void {
        this.#require(caller, route);
        requireFresh(caller, route);
    }

    onEnd(caller: Caller, route: Route, ended: () => void): () => void {
        if (caller.id === null || (caller.sessionId === null && caller.tokenId === null)) {
            return () => undefined;
        }
        const userId = caller.id;
        const watcher: Watcher = { caller, route, ended };
        const own = this.#watchers.get(userId) ?? new Set();
        this.#watchers.set(userId, own.add(watcher));
        this.#sweep ??= this.#outside(() => setInterval(() => this.#expire(), sweepMs)).unref();
        this.#check(userId, watcher);
        return () => this.#unwatch(userId, watcher);
    }

    /** Stops looking for what has expired. */
    stop(): void {
        clearInterval(this.#sweep ?? undefined);
        this.#sweep = null;
    }

    #verify(token: string): Verified {
        const { signer, clock, sessions } = this.#in;
        const claims = signer.verify('access', token, clock.now());
        const session = sessions.get(claims.sid);
        if (session === undefined || session.userId !== Number(claims.sub)) {
            throw fail.TOKEN_REVOKED();
        }
        const verified: Verified = { session, expiresAt: claims.exp * 1000 };
        this.#remember(token, verified);
        return verified;
    }

    #promote(token: string): Verified | undefined {
        const verified = this.#old.get(token);
        if (verified !== undefined) {
            this.#remember(token, verified);
        }
        return verified;
    }

    #remember(token: string, verified: Verified): void {
        if (this.#young.size >= generation) {
            this.#old = this.#young;
            this.#young = new Map();
        }
        this.#young.set(token, verified);
    }

    #ofSession(session: Session, used: boolean): Caller {
        const { sessions, settings, clock } = this.#in;
        if (sessions.get(session.id) !== session) {
            throw fail.TOKEN_REVOKED();
        }
        const account = this.#account(session.userId);
        const now = clock.now();
        const age = now - session.provenAt;
        const fresh = age < settings.get('panel.stepUpMinutes') * minuteMs && age > -leewayMs;
        const built = this.#built.get(session);
        const caller =
            built?.account === account && built.caller.fresh === fresh
                ? built.caller
                : this.#build(session, account, callerOf(account, session, fresh));
        if (used) {
            sessions.touch(session, now);
        }
        return caller;
    }

    #ofToken(token: ApiToken, used: boolean): Caller {
        if (token.plugin !== null && token.expiresAt <= this.#in.clock.now()) {
            throw fail.TOKEN_REVOKED(); // no client could ask for a new one
        }
        this.#in.apiTokens.require(token);
        const account = this.#account(token.userId);
        const built = this.#built.get(token);
        if (used) {
            this.#in.apiTokens.touch(token, this.#in.clock.now());
        }
        return built?.account === account
            ? built.caller
            : this.#build(
                  token,
                  account,
                  token.plugin === null
                      ? callerOfToken(account, token)
                      : callerByMandate(account, token, token.plugin)
              );
    }

    #build(holder: Session | ApiToken, account: Account, caller: Caller): Caller {
        this.#built.set(holder, { account, caller });
        return caller;
    }

    #account(id: number): Account {
        const account = this.#in.accounts.get(id);
        if (account === undefined || account.disabled) {
            throw fail.TOKEN_REVOKED();
        }
        return account;
    }

    /** The caller behind a session or an API token as of now. */
    #now(sessionId: number | null, tokenId: number | null): Caller {
        const token = tokenId === null ? undefined : this.#in.apiTokens.byId(tokenId);
        const session = sessionId === null ? undefined : this.#in.sessions.get(sessionId);
        if (token !== undefined) {
            return this.#ofToken(token, false);
        }
        if (session === undefined) {
            throw fail.TOKEN_REVOKED();
        }
        return this.#ofSession(session, false);
    }

    /** All that a route asks, but freshness: that is asked at the beginning only. */
    #require(caller: Caller, route: Route): void {
        if (typeof route.access !== 'string' || caller.kind === 'system') {
            return;
        }
        if (caller.id === null) {
            throw fail.UNAUTHENTICATED();
        }
        const open = route.whileLocked ?? [];
        if (!open.includes('password') && this.#in.accounts.get(caller.id)?.mustChangePassword === true) {
            throw fail.PASSWORD_CHANGE_REQUIRED();
        }
        if (
            !open.includes('totp') &&
            this.#in.settings.get('panel.requireTotp') &&
            !this.#in.secondFactors.has(caller.id)
        ) {
            throw fail.TOTP_SETUP_REQUIRED();
        }
        requireAccess(caller, route);
    }

    #recheck(userId: number): void {
        for (const watcher of [...(this.#watchers.get(userId) ?? [])]) {
            this.#check(userId, watcher);
        }
    }

    #check(userId: number, watcher: Watcher): void {
        try {
            this.#require(this.#now(watcher.caller.sessionId, watcher.caller.tokenId), watcher.route);
        } catch {
            if (this.#unwatch(userId, watcher)) {
                watcher.ended();
            }
        }
    }

    #expire(): void {
        for (const userId of [...this.#watchers.keys()]) {
            this.#recheck(userId);
        }
    }

    #unwatch(userId: number, watcher: Watcher): boolean {
        const own = this.#watchers.get(userId);
        const there = own?.delete(watcher) ?? false;
        if (own?.size === 0) {
            this.#watchers.delete(userId);
        }
        if (this.#watchers.size === 0) {
            this.stop();
        }
        return there;
    }
}

function callerOf(account: Account, session: Session, fresh: boolean): Caller {
    const { id, username, role, permissions, allowed } = account;
    return {
        kind: 'user',
        id,
        username,
        role,
        tokenId: null,
        permissions,
        key: `user:${id}`,
        can: (permission) => allowed.has(permission),
        sessionId: session.id,
        plugin: null,
        fresh
    };
}

/** What the owner may now, and of that only what the token or grant was given. A grant never counts as fresh: its client is no person. */
function callerOfToken(account: Account, token: ApiToken): Caller {
    const { id, username, role } = account;
    const permissions = token.permissions.filter((permission) => account.allowed.has(permission));
    const allowed = new Set(permissions);
    return {
        kind: 'token',
        id,
        username,
        role,
        tokenId: token.id,
        token: { name: token.name, expiresAt: new Date(token.expiresAt).toISOString() },
        permissions,
        key: `token:${token.id}`,
        can: (permission) => allowed.has(permission),
        sessionId: null,
        plugin: null,
        ...(token.resource === null ? { fresh: true } : { fresh: false, resource: token.resource })
    };
}

/** What the giver may now; the routes are checked where the plugin uses it. It never counts as fresh. */
function callerByMandate(account: Account, { id: tokenId, routes }: ApiToken, plugin: string): Caller {
    const { id, username, role, permissions, allowed } = account;
    return {
        kind: 'mandate',
        id,
        username,
        role,
        tokenId,
        permissions,
        key: `mandate:${tokenId}`,
        can: (permission) => allowed.has(permission),
        sessionId: null,
        plugin: null,
        mandate: { plugin, routes: routes ?? [] },
        fresh: false
    };
}
