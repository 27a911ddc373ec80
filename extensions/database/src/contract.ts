/** What other plugins may ask of this one, by the permissions of the user they ask for. Types only. */
import type { Call } from '@portico/sdk';

import type { Level } from './kinds/kind.ts';

/** How a program reaches a database. The password is shown this once. */
export interface ProvidedConnection {
    readonly kind: 'mysql' | 'postgresql';
    readonly host: string | null;
    readonly port: number;
    readonly socket: string | null;
    readonly database: string;
    readonly username: string;
    /** Names the account for `drop`; for MySQL with where it comes from. */
    readonly account: string;
    readonly password: string;
    /** Without the password. */
    readonly uri: string;
}

/** A server that databases can be made on. */
export interface OfferedServer {
    readonly id: number;
    readonly name: string;
    readonly kind: 'mysql' | 'postgresql';
    readonly state: string;
}

/** The contract of the plugin `database`. */
export interface DatabaseContract {
    /** Needs `read`. */
    list(input: Record<never, never>, call: Call): Promise<{ servers: OfferedServer[] }>;
    /**
     * Makes a database and an account with a level in it; needs `write` and `secrets`. @throws CONFLICT 40900 for a database that is there, unless
     * `existing` says that only an account is wanted
     */
    provision(
        input: {
            readonly serverId: number;
            readonly database: string;
            readonly level: Level;
            readonly existing?: boolean;
        },
        call: Call
    ): Promise<ProvidedConnection>;
    /** Copies a database into a new one on the same server, and waits until it is whole; needs `write`. @throws CONFLICT 40900 */
    clone(
        input: { readonly serverId: number; readonly database: string; readonly name: string },
        call: Call
    ): Promise<{ cloned: boolean }>;
    /** Removes the database, and the account when it is named; needs `write` and, for the account, `secrets`. What is gone already is no error. */
    drop(
        input: { readonly serverId: number; readonly database: string; readonly account?: string },
        call: Call
    ): Promise<{ dropped: boolean }>;
}
