/** A list of the panel, page by page, as far as it was looked at. */
import { type InfiniteData, useInfiniteQuery } from '@tanstack/preact-query';

import { call } from './client.ts';
import type { ApiFailure } from './failure.ts';
import { queries } from './queries.ts';

interface RowsPage<Row> {
    readonly rows: readonly Row[];
    readonly next: string | null;
    /** Of all pages; null where the panel does not count. */
    readonly total: number | null;
}

/** A list with what is there of it. */
export interface Rows<Row> {
    readonly rows: readonly Row[];
    readonly total: number | null;
    readonly error: ApiFailure | null;
    readonly isPending: boolean;
    /** Reads the next page; null where there is none, or it is under way. */
    readonly more: (() => Promise<unknown>) | null;
}

/** Reads all of a list, past the cache. @throws ApiFailure */
export async function readAll<Row>(
    path: string,
    filters: Readonly<Record<string, unknown>>
): Promise<readonly Row[]> {
    const rows: Row[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
        const page: RowsPage<Row> = await readPage<Row>(path, filters, cursor);
        rows.push(...page.rows);
        cursor = page.next;
    }
    return rows;
}

async function readPage<Row>(
    path: string,
    filters: Readonly<Record<string, unknown>>,
    cursor: string,
    signal?: AbortSignal
): Promise<RowsPage<Row>> {
    const { data, headers } = await call<readonly Row[]>('GET', path, {
        query: { ...filters, cursor },
        signal
    });
    const next = /[?&]cursor=([^&>]+)[^>]*>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    const total = headers.get('x-total-count');
    return {
        rows: data,
        next: next === undefined ? null : decodeURIComponent(next),
        total: total === null ? null : Number(total)
    };
}

/** Reads the first page of a list into the cache, where `useRows` finds it. @throws ApiFailure */
export async function fetchRows(path: string, filters: Readonly<Record<string, unknown>>): Promise<void> {
    await queries.fetchInfiniteQuery({ ...listAt<unknown>(path, filters), staleTime: 0 });
}

function listAt<Row>(path: string | null, filters: Readonly<Record<string, unknown>>) {
    return {
        queryKey: ['read', path, filters] as readonly unknown[],
        initialPageParam: '',
        queryFn: ({ pageParam, signal }: { pageParam: string; signal: AbortSignal }) =>
            readPage<Row>(path ?? '', filters, pageParam, signal)
    };
}

/** Reads a list through the cache. Null for a path: nothing is asked. While new filters are asked for, the rows of the old ones stay. */
export function useRows<Row>(path: string | null, filters: Readonly<Record<string, unknown>>): Rows<Row> {
    const query = useInfiniteQuery<
        RowsPage<Row>,
        ApiFailure,
        InfiniteData<RowsPage<Row>, string>,
        readonly unknown[],
        string
    >({
        ...listAt<Row>(path, filters),
        enabled: path !== null,
        placeholderData: (before) => before,
        getNextPageParam: ({ next }) => next ?? undefined
    });
    return {
        rows: query.data?.pages.flatMap((page) => page.rows) ?? [],
        total: query.data?.pages[0]?.total ?? null,
        error: query.error,
        isPending: query.isPending,
        more: query.hasNextPage && !query.isFetchingNextPage ? () => query.fetchNextPage() : null
    };
}
