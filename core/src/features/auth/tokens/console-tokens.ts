/**
 * Tokens of the command line. A user who can read the data folder's keys owns the panel, and proves it with a token made of them: for one
 * request within half a minute, from the panel's own machine, to the process that runs now.
 */
import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';

import { parseIp, unmapped } from '../../../platform/address/ip.ts';
import type { Caller } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import { fail } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import { systemCaller } from '../../../server/http/request/internal-call.ts';
import { TokenSigner } from './jwt.ts';

const lifeMs = 30_000;
const instanceForm = /^[\w-]{22}$/;

/** The system, on behalf of the user at the console. */
const caller = systemCaller('console');

/**
 * Makes one token, outside the panel.
 *
 * @param instance - what the running panel wrote beside its address; another process takes no token that was made for it
 * @throws TypeError when it is not of that form
 */
export function signConsoleToken(keyring: Pick<Keyring, 'derive'>, instance: string, now: number): string {
    if (!instanceForm.test(instance)) {
        throw new TypeError("The panel's instance is not of its form");
    }
    return signerOf(keyring, instance).sign('console', {
        userId: 0,
        sessionId: 0,
        id: randomBytes(16).toString('base64url'),
        issuedAt: now,
        expiresAt: now + lifeMs
    });
}

/** The panel's side: takes each token once. */
export class ConsoleTokens {
    /** Names this process: what was spent is known to it alone, so no other one takes its tokens. */
    readonly instance = randomBytes(16).toString('base64url');
    readonly #clock: Clock;
    readonly #signer: TokenSigner;
    /** Until when each spent one would be valid. */
    readonly #spent = new Map<string, number>();

    constructor({ clock, keyring }: { readonly clock: Clock; readonly keyring: Pick<Keyring, 'derive'> }) {
        this.#clock = clock;
        this.#signer = signerOf(keyring, this.instance);
    }

    /** Whether a bearer says that it is one. */
    claims(token: string): boolean {
        return this.#signer.is('console', token);
    }

    /** @throws TOKEN_INVALID 40101 also from another machine, TOKEN_EXPIRED 40102, TOKEN_REVOKED 40103 when it was used */
    take(token: string, ip: string): Caller {
        const now = this.#clock.now();
        const { jti, exp } = this.#signer.verify('console', token, now);
        if (!isThisMachine(ip)) {
            throw fail.TOKEN_INVALID();
        }
        if (this.#spent.has(jti)) {
            throw fail.TOKEN_REVOKED();
        }
        for (const [spent, until] of this.#spent) {
            if (until <= now) {
                this.#spent.delete(spent);
            }
        }
        this.#spent.set(jti, exp * 1000);
        return caller;
    }
}

function signerOf(keyring: Pick<Keyring, 'derive'>, instance: string): TokenSigner {
    return new TokenSigner(keyring.derive(`console ${instance}`));
}

/** A loopback address, or one of the machine's own, by which it reaches a panel that listens on that alone. */
function isThisMachine(ip: string): boolean {
    const address = parseIp(ip);
    return (
        (address !== null && unmapped(address).range() === 'loopback') ||
        Object.values(networkInterfaces()).some((addresses) =>
            addresses?.some(({ address }) => address === ip)
        )
    );
}
