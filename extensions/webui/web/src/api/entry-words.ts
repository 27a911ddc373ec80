/** Entries of the audit log in words: the summary of the operation that an entry comes from; where no operation fits, its thing and its action. */
import { useMemo } from 'preact/hooks';

import type { Document } from '../schema/document.ts';
import { inWords } from '../schema/schema.ts';
import { t } from '../words/t.ts';
import { useDocument, useDocuments } from './document.ts';

/** What an entry names. */
interface Named {
    readonly action: string;
    readonly resource: string;
}

/** Actions that operations have another word for. That an attempt failed is the outcome of the entry. */
const inOperations: Readonly<Record<string, string>> = {
    delete: 'remove',
    uninstall: 'remove',
    login_failed: 'login'
};

/** Reads the summaries of what these entries name. Answers with the words of each of them: until its summary is there, its thing and its action. */
export function useEntryWords(entries: readonly Named[]): (entry: Named) => string {
    // A small part of the document: its tags name all groups of routes, and what their entries name.
    const { data: small } = useDocument('panel');
    const groups = new Map((small?.tags ?? []).map((tag) => [tag.name, tag]));
    const named = new Set(entries.map(({ resource }) => resource));
    const documents = useDocuments(
        [...groups.values()]
            .filter(({ name, 'x-resources': own = [] }) => [name, ...own].some((each) => named.has(each)))
            .map(({ name }) => name)
    );
    const summaries = useMemo(() => summariesOf(documents), [documents]);
    return ({ action, resource }) => {
        const thing = groups.get(resource)?.['x-summary'] ?? inWords(resource);
        const own = t(action);
        return (
            summaries.get(`${action} ${resource}`) ??
            summaries.get(operationOf(action, resource)) ??
            `${t(thing)}: ${own === action ? action.replaceAll(/[-_]/g, ' ') : own}`
        );
    };
}

/** Summaries by the id of the operation, and by what its entries say: action and thing, where they fit one operation alone. */
function summariesOf(documents: readonly Document[]): ReadonlyMap<string, string> {
    const operations = documents.flatMap(({ paths }) =>
        Object.values(paths).flatMap((methods) => Object.values(methods))
    );
    const byEntry = Map.groupBy(
        operations.filter((each) => each['x-audit'] !== undefined),
        ({ 'x-audit': entry }) => `${entry?.action} ${entry?.resource}`
    );
    return new Map([
        ...operations.map(({ operationId = '', summary = '' }) => [operationId, summary] as const),
        ...[...byEntry]
            .filter(([, all]) => all.length === 1)
            .map(([entry, [only]]) => [entry, only?.summary ?? ''] as const)
    ]);
}

/** `delete` of `dns-providers` is the operation `dnsProviders.remove`. */
function operationOf(action: string, resource: string): string {
    return [resource, inOperations[action] ?? action]
        .map((name) => name.replaceAll(/[-_](\w)/g, (_all, letter: string) => letter.toUpperCase()))
        .join('.');
}
