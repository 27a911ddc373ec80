/**
 * Who is logged in. The access token lives in this tab's memory alone; the refresh token is in the session's storage, or in the
 * browser's when the user chose to stay signed in. Nothing is in a cookie.
 */
export interface TokenPair {
    readonly token: string;
    readonly refreshToken: string;
}

const key = 'portico.refresh';
const channel = new BroadcastChannel('portico.session');
const listeners = new Set<() => void>();
let access: string | null = null;

const stored = (): string | null => sessionStorage.getItem(key) ?? localStorage.getItem(key);
const changed = (): void => listeners.forEach((listener) => listener());

/** The access token; null before a login, and after a reload until the first refresh. */
export const accessToken = (): string | null => access;

/** The refresh token; null when the user is logged out. */
export const refreshToken = stored;

/** Whether there is a session to go on with. */
export const isLoggedIn = (): boolean => stored() !== null;

/** Takes the tokens of a login. @param stays - keeps the session when the browser is closed */
export function begin({ token, refreshToken: next }: TokenPair, stays: boolean): void {
    access = token;
    (stays ? localStorage : sessionStorage).setItem(key, next);
    changed();
}

/** Takes the tokens of a refresh, and keeps them where the old ones were. */
export function renew({ token, refreshToken: next }: TokenPair): void {
    access = token;
    (localStorage.getItem(key) === null ? sessionStorage : localStorage).setItem(key, next);
}

/** Forgets the session in this tab and tells the other tabs. */
export function end(): void {
    forget();
    channel.postMessage('end');
}

/** Takes a token out of use that the panel refused: the next call renews it. */
export function drop(token: string | null): void {
    access = access === token ? null : access;
}

/** Calls the listener when the session begins or ends. Returns what stops that. */
export function onChange(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** Forgets the session in this tab alone. */
export function forget(): void {
    access = null;
    sessionStorage.removeItem(key);
    localStorage.removeItem(key);
    changed();
}

channel.addEventListener('message', forget);
