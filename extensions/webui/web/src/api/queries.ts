/** The cache of answers, and what the panel's events make stale in it. */
import { QueryClient, useQuery } from '@tanstack/preact-query';

import { call } from './client.ts';
import { ApiFailure } from './failure.ts';
import type { Me } from './session/login.ts';
import { isLoggedIn } from './session/session.ts';

/** One cache for the whole application. A refusal is no reason to ask again; a panel that is away is. */
export const queries = new QueryClient({
    defaultOptions: {
        queries: {
            staleTime: 5_000,
            retry: (count, error) => error instanceof ApiFailure && error.status === 0 && count < 3
        }
    }
});

/** Reads a path through the cache. Null for a path: nothing is asked. */
export function useRead<T>(path: string | null): {
    data: T | undefined;
    error: ApiFailure | null;
    isPending: boolean;
} {
    const { data, error, isPending } = useQuery<T, ApiFailure>({
        queryKey: ['read', path],
        queryFn: async ({ signal }) => (await call<T>('GET', path ?? '', { signal })).data,
        enabled: path !== null
    });
    return { data, error, isPending };
}

/** Marks all answers below a path as stale. */
export async function invalidate(prefix: string): Promise<void> {
    await queries.invalidateQueries({
        predicate: ({ queryKey }) => typeof queryKey[1] === 'string' && queryKey[1].startsWith(prefix)
    });
}

/** The user of this session. */
export function useMe(): Me | undefined {
    return useRead<Me>(isLoggedIn() ? '/api/auth/me' : null).data;
}

/** Whether the user has a permission. `authenticated` is what every user has. */
export function useMay(): (permission: string | undefined) => boolean {
    const me = useMe();
    return (permission) =>
        permission === undefined ||
        permission === 'authenticated' ||
        (me?.permissions.includes(permission) ?? false);
}
