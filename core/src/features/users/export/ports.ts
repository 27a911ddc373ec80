/** What the section of users needs from the rest of the panel. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { Roles } from '../roles/roles.ts';
import type { Logins } from '../users.ts';

/** The second factor of an account, as an export carries it. */
export interface MovedFactor {
    readonly secret: string;
    /** The last time step whose code was used. */
    readonly lastStep: number;
    /** The salt of the recovery codes; null when they are hashed with a key of their panel, so that they work only there. */
    readonly salt: string | null;
    readonly recoveryCodes: string[];
}

/** The port to the feature `auth`, which keeps second factors. */
export interface Factors {
    /** Null when the account has none. */
    secondFactorOf(userId: number): MovedFactor | null;
    /** @throws TypeError when it is malformed */
    putSecondFactor(tx: Transaction, userId: number, factor: MovedFactor): Promise<void>;
}

/** What the section needs. */
export interface UserSectionOptions {
    readonly db: Database;
    readonly clock: Clock;
    readonly accounts: Accounts;
    readonly roles: Roles;
    readonly logins: Logins;
    readonly factors: Factors;
}
