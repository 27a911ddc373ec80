/** Logs in to the running panel with a password, for what belongs to an account and is nothing that the machine may do for it. */
import { hash } from 'node:crypto';

import { CommandError, RequestRefused } from '../command/command-error.ts';
import type { Client } from './client.ts';

interface Challenge {
    readonly algorithm: string;
    readonly challenge: string;
    readonly maxnumber: number;
    readonly salt: string;
    readonly signature: string;
}

/** Does work as a user, in a session that ends with it. @throws CommandError when the login is refused */
export async function asUser<T>(
    client: Client,
    username: string,
    password: string,
    work: (own: Client) => Promise<T>
): Promise<T> {
    const stranger = client.as(null);
    const { data: challenge } = await stranger.call<Challenge>('GET', '/api/auth/login');
    const { data } = await stranger
        .call<{ readonly token: string }>('POST', '/api/auth/login', {
            username,
            password,
            altcha: solve(challenge)
        })
        .catch((error: unknown) => {
            throw error instanceof RequestRefused && error.reason === 'TOTP_REQUIRED'
                ? new CommandError(
                      `${username} has a second factor already. Without its device: portico admin reset-password ${username} --disable-totp`
                  )
                : error;
        });
    const own = client.as(data.token);
    try {
        return await work(own);
    } finally {
        await own.call('POST', '/api/auth/logout').catch(() => undefined);
    }
}

/** Finds the number of a proof of work, and makes the text that a login takes. */
function solve({ algorithm, challenge, maxnumber, salt, signature }: Challenge): string {
    for (let number = 0; number <= maxnumber; number += 1) {
        if (hash('sha256', salt + number) === challenge) {
            const solution = { algorithm, challenge, number, salt, signature };
            return Buffer.from(JSON.stringify(solution)).toString('base64');
        }
    }
    throw new CommandError('The panel gave a challenge that has no solution');
}
