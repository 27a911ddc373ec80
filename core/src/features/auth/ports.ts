/** What auth/ needs of the accounts, the settings and the gateway. Implemented elsewhere, handed over by the composition root. */
import type { Transaction } from '../../platform/database/database.ts';
import type { Route } from '../../server/http/route.ts';

/** An account as of now; a change makes a new object. */
export interface Account {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    readonly permissions: readonly string[];
    readonly allowed: ReadonlySet<string>;
    readonly disabled: boolean;
    readonly mustChangePassword: boolean;
}

/** A password that was right a moment ago. */
export interface Proof {
    readonly account: Account;
    readonly passwordHash: string;
    readonly renewedHash: string | null;
}

/** The accounts, as authentication needs them. Implemented by `users/`. */
export interface Accounts {
    get(id: number): Account | undefined;
    named(username: string): Account | undefined;
    onChange(listener: (id: number) => void): void;
    /** Computes exactly one hash, whatever the outcome. */
    authenticate(username: string, password: string): Promise<Proof | null>;
    confirm(id: number, password: string): Promise<Proof | null>;
    stillProven(tx: Transaction, proof: Proof): Promise<boolean>;
    loggedIn(tx: Transaction, proof: Proof): Promise<void>;
    hash(username: string, password: string, path: string): Promise<string>;
    setPassword(
        tx: Transaction,
        id: number,
        passwordHash: string,
        mustChangePassword: boolean
    ): Promise<void>;
    /** Makes what is in memory follow the commit. */
    changed(tx: Transaction, id: number): void;
}

/** The settings that auth/ reads, as of now. */
export interface AuthSettings {
    /** Value of `panel.accessTokenMinutes` (30), `panel.refreshTokenDays` (14) or `panel.stepUpMinutes` (15). */
    get(key: 'panel.accessTokenMinutes' | 'panel.refreshTokenDays' | 'panel.stepUpMinutes'): number;
    get(key: 'panel.requireTotp' | 'panel.oauthRegistration'): boolean;
}

/** The route that a GET of this path (no query) reaches on whichever server owns it; null when there is none. */
export type ResolveRoute = (path: string) => Route | null;

/** What plugins hang on at the entrance. */
export interface LoginHooks {
    /** Answers false when a plugin refuses a login whose password was right. Never gets the password; must not throw. */
    beforeLogin(event: {
        readonly username: string;
        readonly ip: string | null;
        readonly userAgent: string | null;
    }): Promise<boolean>;
    /** After the session is there; must not throw. */
    afterLogin(event: {
        readonly userId: number;
        readonly username: string;
        readonly ip: string | null;
        readonly userAgent: string | null;
        readonly newNetwork: boolean;
    }): void;
}
