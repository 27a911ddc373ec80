/** Logging in and out, and being asked again. */
import { call } from '../client.ts';
import { solve } from './proof.ts';
import type { Challenge } from './proof.worker.ts';
import { begin, end, renew, type TokenPair } from './session.ts';

/** What a user gives to log in. */
export interface Credentials {
    readonly username: string;
    readonly password: string;
    readonly totp: string;
    /** Keeps the session when the browser is closed. */
    readonly stays: boolean;
}

/** The user of this session, as `GET /api/auth/me` shows it. */
export interface Me {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    readonly permissions: readonly string[];
    readonly totpEnabled: boolean;
    readonly mustChangePassword: boolean;
}

/** Logs in: gets a challenge, solves it, sends it with the credentials. @throws ApiFailure */
export async function logIn(credentials: Credentials, progress: (tried: number) => void): Promise<void> {
    begin(await tokensFor(credentials, progress), credentials.stays);
}

/** Logs the same user in again; the session is kept where the one before was. @throws ApiFailure */
export async function logInAgain(
    credentials: Omit<Credentials, 'stays'>,
    progress: (tried: number) => void
): Promise<void> {
    renew(await tokensFor(credentials, progress));
}

async function tokensFor(
    { username, password, totp }: Omit<Credentials, 'stays'>,
    progress: (tried: number) => void
): Promise<TokenPair> {
    const { data: challenge } = await call<Challenge>('GET', '/api/auth/login', { isPublic: true });
    const altcha = await solve(challenge, progress);
    const body = { username, password, altcha, ...(totp === '' ? {} : { totp }) };
    return (await call<TokenPair>('POST', '/api/auth/login', { isPublic: true, body })).data;
}

/** Ends the session here and on the panel. */
export async function logOut(): Promise<void> {
    await call('POST', '/api/auth/logout').catch(() => undefined);
    end();
}

/** Makes the session fresh. @throws ApiFailure for a wrong password or code */
export async function stepUp(proof: { readonly password?: string; readonly totp?: string }): Promise<void> {
    await call('POST', '/api/auth/step-up', { body: proof });
}
