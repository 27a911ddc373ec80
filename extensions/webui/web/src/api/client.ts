/** Calls of the panel's API: the token, its refresh, freshness, keys against doing a thing twice, and failures as one class. */
import { randomId } from '../browser/ids.ts';
import { Store } from '../kit/store.ts';
import { ApiFailure, unreachable } from './failure.ts';
import { fetchWithProgress } from './progress.ts';
import { accessToken, drop, forget, refreshToken, renew, type TokenPair } from './session/session.ts';

/** What a call may say beside its method and path. */
export interface CallOptions {
    readonly query?: Readonly<Record<string, unknown>>;
    readonly body?: unknown;
    /** Version that the change was made for. */
    readonly version?: number | undefined;
    readonly signal?: AbortSignal | undefined;
    /** False for calls that need no token. */
    readonly isPublic?: boolean;
    /** Sent as they are, in the place of `body`. */
    readonly bytes?: Blob | undefined;
    /** Is told how many bytes were sent; a file needs it where a user waits for it. */
    readonly onProgress?: ((sent: number) => void) | undefined;
    readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that is no failure. */
export interface Answer<T> {
    readonly status: number;
    readonly message: string;
    readonly data: T;
    readonly headers: Headers;
}

type Ask = (failure: ApiFailure) => Promise<boolean>;

let askAgain: Ask = () => Promise.resolve(false);
let askToLogIn = (): Promise<boolean> => Promise.resolve(false);
let refreshing: Promise<void> | null = null;

/** Sets what asks the user for the password or the code when a call needs that. It resolves with false when the user does not want to. */
export function onStepUp(ask: Ask): void {
    askAgain = ask;
}

/**
 * Sets what lets the same user log in again when the panel has ended the session. It resolves with false when the user does not want to. All calls
 * wait for it meanwhile and then go on, so nothing that was typed is lost.
 */
export function onSessionEnd(ask: () => Promise<boolean>): void {
    askToLogIn = ask;
}

/** Calls the API. @throws ApiFailure for every answer with an error status, and when there is no answer */
export async function call<T = unknown>(
    method: string,
    path: string,
    options: CallOptions = {}
): Promise<Answer<T>> {
    const response = await exchange(method, path, options);
    const { data, message } = (await response.json()) as { data: T; message: string };
    return { status: response.status, message, data, headers: response.headers };
}

/** Calls the API and returns the response as it is. @throws ApiFailure as `call` does */
export async function exchange(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    const key = method === 'POST' ? randomId() : null;
    const attempt = async (): Promise<Response> => accepted(await send(method, path, options, key));
    try {
        return await attempt();
    } catch (error) {
        if (!(error instanceof ApiFailure) || options.isPublic === true) {
            throw error;
        }
        if (error.reason === 'STEP_UP_REQUIRED' && (await askAgain(error))) {
            return attempt();
        }
        if (error.reason === 'TOTP_SETUP_REQUIRED') {
            needsTotp.set(true);
        }
        throw error;
    }
}

/** Whether the panel lets the user do nothing until a second factor is set up. It stays until the recovery codes were read. */
export const needsTotp = new Store(false);

/** The access token for libraries that send requests by themselves. It is renewed first where it is missing. */
export async function freshToken(): Promise<string> {
    if (accessToken() === null) {
        await refresh();
    }
    return accessToken() ?? '';
}

/** Opens a stream or a file. The caller reads the body. @throws ApiFailure */
export async function open(
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal
): Promise<Response> {
    return accepted(await send('GET', path, { signal, headers }, null));
}

/** Opens a stream that a body begins. The caller reads it. @throws ApiFailure as `call` does */
export function openWith(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
    return exchange('POST', path, { body, signal });
}

/** Reads a JSON document that comes without an envelope. @throws ApiFailure */
export async function readDocument<T>(path: string, signal: AbortSignal): Promise<T> {
    return (await (await open(path, {}, signal)).json()) as T;
}

/** The address of a call, with its query. */
export function address(path: string, query: CallOptions['query'] = {}): string {
    const pairs = Object.entries(query)
        .filter(([, value]) => value !== undefined && value !== null && value !== '')
        .flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)]));
    return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs).toString()}`;
}

async function send(
    method: string,
    path: string,
    { query, body, bytes, onProgress, headers = {}, version, signal, isPublic = false }: CallOptions,
    key: string | null
): Promise<Response> {
    if (!isPublic && accessToken() === null) {
        await refresh();
    }
    const ask = (): Promise<Response> =>
        (onProgress === undefined ? fetch : fetchWithProgress(onProgress))(address(path, query), {
            method,
            headers: {
                ...(bytes === undefined ? {} : { 'content-type': bytes.type || 'application/octet-stream' }),
                ...headers,
                ...(isPublic ? {} : { authorization: `Bearer ${accessToken()}` }),
                ...(body === undefined ? {} : { 'content-type': 'application/json' }),
                ...(key === null ? {} : { 'idempotency-key': key }),
                ...(version === undefined ? {} : { 'if-match': `"${version}"` })
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
            ...(bytes === undefined ? {} : { body: bytes }),
            ...(signal === undefined ? {} : { signal })
        }).catch((error: unknown) => {
            throw signal?.aborted === true ? error : unreachable();
        });
    const used = accessToken();
    const response = await ask();
    if (response.status === 401 && !isPublic) {
        const { reason } = await failureOf(response.clone());
        if (reason === 'TOKEN_EXPIRED' || reason === 'TOKEN_REVOKED') {
            drop(used);
            if (accessToken() === null) {
                await refresh();
            }
            return ask();
        }
    }
    return response;
}

async function accepted(response: Response): Promise<Response> {
    return response.ok ? response : Promise.reject(await failureOf(response));
}

async function failureOf(response: Response): Promise<ApiFailure> {
    const envelope = (await response.json().catch(() => null)) as {
        code: number;
        message: string;
        data: unknown;
    } | null;
    return new ApiFailure(
        response.status,
        envelope ?? { code: response.status * 100, message: response.statusText, data: {} },
        response.headers.get('x-request-id')
    );
}

/** One refresh at a time. A panel that does not answer ends no session; one that refuses the token does, unless the user logs in again. */
function refresh(): Promise<void> {
    refreshing ??= renewTokens().finally(() => (refreshing = null));
    return refreshing;
}

async function renewTokens(): Promise<void> {
    const token = refreshToken();
    const response =
        token === null
            ? null
            : await fetch('/api/auth/refresh', {
                  method: 'POST',
                  headers: { authorization: `Bearer ${token}` }
              }).catch(() => {
                  throw unreachable();
              });
    if (response?.status === 401 && (await askToLogIn())) {
        return;
    }
    if (response === null || response.status === 401) {
        forget();
        throw new ApiFailure(
            401,
            { code: 40103, message: 'The session has ended', data: { reason: 'TOKEN_REVOKED' } },
            null
        );
    }
    renew(((await (await accepted(response)).json()) as { data: TokenPair }).data);
}
