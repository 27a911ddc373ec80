/** The panel's OpenAPI document: one tag's part for a page, the whole for what points to another tag. */
import { useQuery } from '@tanstack/preact-query';

import type { Document } from '../schema/document.ts';
import { readDocument } from './client.ts';
import type { ApiFailure } from './failure.ts';
import { queries } from './queries.ts';

/** Reads the part of a tag; all of it without a tag. */
export function useDocument(
    tag: string | null,
    isWanted = true
): { data: Document | undefined; error: ApiFailure | null } {
    const { data, error } = useQuery<Document, ApiFailure>({ ...part(tag), enabled: isWanted });
    return { data, error };
}

/** Reads the part of a tag through the cache; all of it without a tag. @throws ApiFailure, such as 40400 for a tag that is none */
export function fetchDocument(tag: string | null): Promise<Document> {
    return queries.fetchQuery(part(tag));
}

function part(tag: string | null) {
    const path = `/api/openapi.json${tag === null ? '' : `?tag=${encodeURIComponent(tag)}`}`;
    return {
        queryKey: ['document', path],
        queryFn: ({ signal }: { signal: AbortSignal }) => readDocument<Document>(path, signal),
        staleTime: 60_000
    };
}

/** The path of a list by the id of its operation; null while it is not known. */
export function useListPath(operationId: string | undefined): string | null {
    const { data } = useDocument(null, operationId !== undefined);
    const found = Object.entries(data?.paths ?? {}).find(
        ([, methods]) => methods['get']?.operationId === operationId
    );
    return operationId === undefined ? null : (found?.[0] ?? null);
}
