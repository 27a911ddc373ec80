/** Reads YAML as plain data: no tags, no key twice, no endless aliases. */
import { parseDocument } from 'yaml';

/** A mapping as plain data. */
export type Tree = Record<string, unknown>;

/** Whether a parsed YAML value is a mapping, and neither a list nor a scalar. */
export const isTree = (value: unknown): value is Tree =>
    value !== null && typeof value === 'object' && !Array.isArray(value);

const mostAliases = 100;

/** The mapping that a text holds, or what is wrong with it. */
export function readTree(text: string): { readonly tree: Tree } | { readonly fault: string } {
    const document = parseDocument(text, {
        version: '1.2',
        schema: 'core',
        merge: true,
        uniqueKeys: true,
        stringKeys: true,
        logLevel: 'error'
    });
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) {
        return { fault: error.message.split('\n', 1)[0] ?? error.message };
    }
    try {
        const tree: unknown = document.toJS({ maxAliasCount: mostAliases });
        return isTree(tree) ? { tree } : { fault: 'it is no mapping' };
    } catch (error) {
        return { fault: (error as Error).message };
    }
}
