/** The panel's OpenAPI document: one tag's part for a page, the whole for what points to another tag. */
import { useQueries, useQuery, type UseQueryResult } from '@tanstack/preact-query';

import type { Document, Tag } from '../schema/document.ts';
import { inWords as inWordsOf } from '../schema/schema.ts';
import { translated } from '../schema/translated.ts';
import { language } from '../words/language.ts';
import { addWords, t, type Table } from '../words/t.ts';
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

/** Reads the parts of these tags. Answers with those that are there: one that fails costs itself alone. */
export function useDocuments(tags: readonly string[]): readonly Document[] {
    return useQueries({ queries: tags.map(part), combine: present });
}

const present = (results: readonly UseQueryResult<Document>[]): readonly Document[] =>
    results.flatMap(({ data }) => data ?? []);

/** Reads the part of a tag through the cache; all of it without a tag. @throws ApiFailure, such as 40400 for a tag that is none */
export function fetchDocument(tag: string | null): Promise<Document> {
    return queries.fetchQuery(part(tag));
}

function part(tag: string | null) {
    const path = `/api/openapi.json${tag === null ? '' : `?tag=${encodeURIComponent(tag)}`}`;
    return {
        queryKey: ['document', path],
        queryFn: async ({ signal }: { signal: AbortSignal }) =>
            inWords(await readDocument<Document>(path, signal)),
        staleTime: 60_000
    };
}

/** The titles of groups of routes and of plugins, by their names. */
export function useTitles(): (name: string) => string {
    const { data } = useDocument('panel');
    return (name) => t(data?.tags.find((tag) => tag.name === name)?.['x-summary'] ?? inWordsOf(name));
}

/** The path of a list by the id of its operation: null without an id, while the document is read, and where the user sees no such list. */
export function useListPath(operationId: string | undefined): {
    readonly path: string | null;
    readonly isPending: boolean;
} {
    const { data, error } = useDocument(null, operationId !== undefined);
    const found = Object.entries(data?.paths ?? {}).find(
        ([, methods]) => methods['get']?.operationId === operationId
    );
    return {
        path: operationId === undefined ? null : (found?.[0] ?? null),
        isPending: operationId !== undefined && data === undefined && error === null
    };
}

/** The path of an operation by its id, such as `cronjob.preview`: null without an id, and where the user sees no such operation. */
export function useOperation(operationId: string | undefined, method: string): string | null {
    const { data } = useDocument(operationId?.split('.')[0] ?? null, operationId !== undefined);
    const found = Object.entries(data?.paths ?? {}).find(
        ([, methods]) => methods[method]?.operationId === operationId
    );
    return found?.[0] ?? null;
}

const loaded = new Map<string, Promise<Table>>();

/** The document in the user's language: the panel's own words first, then those that the plugins bring. */
async function inWords(document: Document): Promise<Document> {
    const chosen = language();
    if (chosen === 'en') {
        return document;
    }
    const tables = await Promise.all(document.tags.map((tag) => wordsOf(tag, chosen)));
    const all = Object.assign({}, ...tables.toReversed()) as Table;
    addWords(all);
    return translated(document, (text) => {
        const own = t(text);
        return own === text ? (all[text] ?? text) : own;
    });
}

/** The words that a plugin brings for a language; none when they cannot be read. */
function wordsOf({ 'x-locales': locales = {} }: Tag, chosen: string): Promise<Table> {
    const path = locales[chosen];
    if (path === undefined) {
        return Promise.resolve({});
    }
    const known =
        loaded.get(path) ??
        fetch(path)
            .then((response) => (response.ok ? (response.json() as Promise<Table>) : {}))
            .catch(() => ({}));
    loaded.set(path, known);
    return known;
}
