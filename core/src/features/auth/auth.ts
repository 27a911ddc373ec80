/** All of auth/ put together: who is asking, how they got in, and what ends that. */
import type { Reply } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { Authenticator, Recorder } from '../../server/http/ports.ts';
import { PanelAuthenticator } from './authenticator.ts';
import { Challenges } from './login/challenge.ts';
import { Login, type SelfView } from './login/login.ts';
import { Pace } from './login/pace.ts';
import { type MovedFactor, SecondFactors } from './login/second-factor.ts';
import { type Step, Throttle } from './login/throttle.ts';
import type { DocumentSource } from './oauth/client-document.ts';
import { OAuthClients } from './oauth/clients.ts';
import { Grants } from './oauth/grants.ts';
import { OAuth, type OAuthDependencies } from './oauth/oauth.ts';
import { OAuthTokens } from './oauth/tokens.ts';
import { OwnAccount } from './own-account.ts';
import type { Account, Accounts, AuthSettings, LoginHooks, ResolveRoute } from './ports.ts';
import type { ApiTokenView } from './tokens/api-token.ts';
import { ApiTokens, type NewApiToken } from './tokens/api-tokens.ts';
import { ConsoleTokens } from './tokens/console-tokens.ts';
import { TokenSigner } from './tokens/jwt.ts';
import { Mandates } from './tokens/mandates.ts';
import { type Session, Sessions } from './tokens/sessions.ts';
import { tokenSecret } from './tokens/signing-secret.ts';
import { Tickets } from './tokens/tickets.ts';

/** What `Auth` is built from. */
export interface AuthDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly keyring: Keyring;
    readonly recorder: Recorder;
    readonly accounts: Accounts;
    readonly settings: AuthSettings;
    readonly resolve: ResolveRoute;
    /** What the OAuth server needs of the panel. Left out: there are no protected resources. */
    readonly oauth?: Pick<OAuthDependencies, 'resource' | 'permissions' | 'origin'> & {
        readonly outbound: DocumentSource;
    };
    /** Left out: nothing hangs on the entrance. */
    readonly hooks?: LoginHooks;
    /** `PORTICO_JWT_SECRET`; null: one is kept in the data folder. */
    readonly jwtSecret: string | null;
    readonly limits?: AuthLimits;
}

/** What protects the entrance; the defaults are for the real one. */
export interface AuthLimits {
    /** Highest number of a challenge when there is no load. */
    readonly challengeNumber?: number;
    /** Challenges, and wrong solutions, of one network a minute; default 600. */
    readonly challengesPerMinute?: number;
    readonly accountSteps?: readonly Step[];
    readonly networkSteps?: readonly Step[];
}

/** One of one's own sessions, as the API shows it. */
export interface SessionView {
    readonly id: number;
    readonly createdAt: string;
    readonly lastSeenAt: string;
    readonly expiresAt: string;
    readonly ip: string;
    readonly userAgent: string | null;
    readonly current: boolean;
}

/** The answer of `GET /api/auth/me`. */
export interface MeView extends SelfView {
    readonly token: {
        readonly kind: 'session' | 'token';
        readonly id: number;
        readonly name: string | null;
        readonly fresh: boolean;
        readonly freshUntil: string | null;
        readonly expiresAt: string;
    };
}

const noResources: NonNullable<AuthDependencies['oauth']> = {
    resource: () => null,
    permissions: () => [],
    origin: () => 'http://localhost',
    outbound: { request: () => Promise.reject(new TypeError('Auth was built without an outbound client')) }
};
const unhooked: LoginHooks = { beforeLogin: async () => true, afterLogin: () => undefined };
const flushMs = 60_000;
const minuteMs = 60_000;
/** Of one network: at `/token` and `/revoke`, and for the preview of an authorization. */
const clientRequestsPerMinute = 600;
const registrationsPerMinute = 20;

/** Authentication as the rest of the panel uses it: login, sessions, API tokens, tickets and the own account. */
export class Auth {
    readonly authenticator: Authenticator & Pick<PanelAuthenticator, 'renew'>;
    readonly login: Login;
    readonly ownAccount: OwnAccount;
    readonly apiTokens: ApiTokens;
    readonly mandates: Mandates;
    readonly consoleTokens: ConsoleTokens;
    readonly oauth: OAuth;
    readonly #in: AuthDependencies;
    readonly #sessions: Sessions;
    readonly #secondFactors: SecondFactors;
    readonly #throttle: Throttle;
    readonly #tickets: Tickets;
    readonly #stopWatching: () => void;
    readonly #flushing: NodeJS.Timeout;

    constructor(dependencies: AuthDependencies) {
        const { db, clock, keyring, limits = {} } = dependencies;
        this.#in = dependencies;
        const signer = new TokenSigner(tokenSecret(dependencies.jwtSecret, keyring));
        const sessions = (this.#sessions = new Sessions({ db, clock }));
        const secondFactors = (this.#secondFactors = new SecondFactors({ db, clock, keyring }));
        const throttle = (this.#throttle = new Throttle({
            db,
            clock,
            key: keyring.derive('auth throttle'),
            ...limits
        }));
        const tickets = (this.#tickets = new Tickets(clock));
        this.apiTokens = new ApiTokens(dependencies);
        this.consoleTokens = new ConsoleTokens(dependencies);
        const common = { ...dependencies, sessions, secondFactors, throttle };
        this.login = new Login({
            ...common,
            signer,
            hooks: dependencies.hooks ?? unhooked,
            pace: new Pace(clock, limits.challengesPerMinute ?? 600),
            challenges: new Challenges({
                db,
                clock,
                key: keyring.derive('auth login challenge'),
                ...(limits.challengeNumber === undefined ? {} : { maxNumber: limits.challengeNumber })
            })
        });
        this.ownAccount = new OwnAccount(common);
        const { apiTokens } = this;
        const oauthTokens = new OAuthTokens({
            db,
            clock,
            apiTokens,
            key: keyring.derive('auth oauth tokens'),
            refreshDays: () => dependencies.settings.get('panel.refreshTokenDays')
        });
        this.oauth = oauthOf(dependencies, { apiTokens, tokens: oauthTokens });
        const authenticator = new PanelAuthenticator({
            ...common,
            signer,
            tickets,
            apiTokens,
            oauthTokens,
            consoleTokens: this.consoleTokens
        });
        this.authenticator = authenticator;
        this.mandates = new Mandates({ ...dependencies, apiTokens, authenticator });
        this.#stopWatching = () => authenticator.stop();
        // What fails here is tried again with the next use; no request waits for it.
        this.#flushing = setInterval(() => void this.flush().catch(() => undefined), flushMs).unref();
    }

    /** Oneself, what one may, and by which token one is here. */
    me(call: Call): MeView {
        const account = this.#account(call);
        const { actor } = call;
        const token = actor.tokenId === null ? undefined : this.apiTokens.byId(actor.tokenId);
        const session = actor.sessionId === null ? undefined : this.#sessions.get(actor.sessionId);
        const ends = token?.expiresAt ?? session?.expiresAt ?? 0;
        const freshUntil =
            session === undefined
                ? null
                : time(session.provenAt + this.#in.settings.get('panel.stepUpMinutes') * minuteMs);
        return {
            ...this.login.self(account),
            permissions: actor.permissions,
            token: {
                kind: token === undefined ? 'session' : 'token',
                id: token?.id ?? session?.id ?? 0,
                name: token?.name ?? null,
                fresh: actor.fresh,
                freshUntil,
                expiresAt: time(ends)
            }
        };
    }

    async logout(call: Call): Promise<null> {
        return this.#in.db.writeEssential(async (tx) => {
            const session = this.#current(call);
            await this.#sessions.end(tx, session);
            return call.complete(tx, {
                action: 'logout',
                resource: 'auth',
                resourceId: session.id,
                reply: null
            });
        });
    }

    listSessions(call: Call): SessionView[] {
        return this.#sessions.of(this.#account(call).id).map((session) => this.#view(session, call));
    }

    /** @throws NOT_FOUND 40400, also for another user's */
    async endSession(call: Call, id: number): Promise<null> {
        return this.#in.db.writeEssential(async (tx) => {
            const session = this.#sessions.get(id);
            if (session === undefined || session.userId !== call.actor.id) {
                throw fail.NOT_FOUND();
            }
            await this.#sessions.end(tx, session);
            return call.complete(tx, {
                action: 'delete',
                resource: 'sessions',
                resourceId: id,
                before: this.#view(session, call),
                after: null,
                reply: null
            });
        });
    }

    async endOtherSessions(call: Call): Promise<null> {
        const { id } = this.#account(call);
        return this.#in.db.writeEssential(async (tx) => {
            await this.#sessions.endOf(tx, id, call.actor.sessionId);
            return call.complete(tx, {
                action: 'delete',
                resource: 'sessions',
                resourceId: null,
                reply: null
            });
        });
    }

    /**
     * A one-time ticket for a GET of exactly this path with its query. A caller who could not do the GET gets no ticket for it.
     *
     * @throws NOT_FOUND 40400, FORBIDDEN 40300, STEP_UP_REQUIRED 40301, VALIDATION_FAILED 40001, RATE_LIMITED 42900
     */
    issueTicket(call: Call, path: string): { readonly ticket: string; readonly expiresAt: string } {
        const [pathname = '', query = ''] = path.split('?', 2);
        if (/(?:^|&)ticket=/.test(query)) {
            throw invalid({ path: 'path', message: 'path must not have a ticket in it' });
        }
        const route = this.#in.resolve(pathname);
        if (route === null) {
            throw fail.NOT_FOUND();
        }
        this.authenticator.admit(call.actor, route);
        return this.#tickets.issue(call.actor, path);
    }

    /** Makes an API token for an account by name, from the console only. @throws FORBIDDEN 40300, NOT_FOUND 40400 and what {@link ApiTokens.create} throws */
    async createToken(
        call: Call,
        username: string,
        input: NewApiToken
    ): Promise<Reply<ApiTokenView & { readonly token: string }>> {
        if (call.actor.kind !== 'system') {
            throw fail.FORBIDDEN({ permission: 'console' }, { message: 'Only the command line can do this' });
        }
        const account = this.#in.accounts.named(username);
        if (account === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no user ${username}` });
        }
        return this.apiTokens.create(call, account.id, input);
    }

    // The side that users/ sees: what lets an account in.

    async endSessions(tx: Transaction, userId: number, but: number | null): Promise<void> {
        await this.#sessions.endOf(tx, userId, but);
    }

    async endAll(tx: Transaction, userId: number): Promise<void> {
        await this.#sessions.endOf(tx, userId, null);
        await this.apiTokens.endOf(tx, userId);
        await this.oauth.clients.removeOf(tx, userId);
    }

    hasSecondFactor(userId: number): boolean {
        return this.#secondFactors.has(userId);
    }

    async removeSecondFactor(tx: Transaction, userId: number): Promise<boolean> {
        return this.#secondFactors.remove(tx, userId);
    }

    /** The active second factor, opened; null without one. */
    secondFactorOf(userId: number): MovedFactor | null {
        return this.#secondFactors.read(userId);
    }

    /** Puts the second factor of another panel in place, for an account that has none. */
    async putSecondFactor(tx: Transaction, userId: number, factor: MovedFactor): Promise<void> {
        await this.#secondFactors.put(tx, userId, factor);
    }

    async forgive(tx: Transaction, userId: number, username: string): Promise<void> {
        await this.#throttle.forgive(tx, username);
        await this.#secondFactors.forgive(tx, userId);
    }

    /** Writes when sessions and tokens were last used. */
    async flush(): Promise<void> {
        await this.#sessions.flush();
        await this.apiTokens.flush();
    }

    /** To be called before the database closes. */
    async stop(): Promise<void> {
        clearInterval(this.#flushing);
        this.#stopWatching();
        await this.flush();
    }

    #account(call: Call): Account {
        const account = call.actor.id === null ? undefined : this.#in.accounts.get(call.actor.id);
        if (account === undefined) {
            throw fail.TOKEN_REVOKED();
        }
        return account;
    }

    #current(call: Call): Session {
        const session = call.actor.sessionId === null ? undefined : this.#sessions.get(call.actor.sessionId);
        if (session === undefined) {
            throw fail.TOKEN_REVOKED();
        }
        return session;
    }

    #view(session: Session, call: Call): SessionView {
        return {
            id: session.id,
            createdAt: time(session.createdAt),
            lastSeenAt: time(session.lastSeenAt),
            expiresAt: time(session.expiresAt),
            ip: session.ip,
            userAgent: session.userAgent,
            current: session.id === call.actor.sessionId
        };
    }
}

/** Builds the OAuth server on the tokens. */
function oauthOf(
    { db, clock, recorder, accounts, settings, oauth = noResources }: AuthDependencies,
    parts: { readonly apiTokens: ApiTokens; readonly tokens: OAuthTokens }
): OAuth {
    const { outbound, ...panel } = oauth;
    const clients = new OAuthClients({ db, clock, recorder, outbound, ...parts });
    return new OAuth({
        ...panel,
        recorder,
        clients,
        grants: new Grants({ db, clock, recorder, accounts, clients, ...parts }),
        pace: new Pace(clock, clientRequestsPerMinute),
        registrations: new Pace(clock, registrationsPerMinute),
        mayRegister: () => settings.get('panel.oauthRegistration')
    });
}

function time(at: number): string {
    return new Date(at).toISOString();
}
