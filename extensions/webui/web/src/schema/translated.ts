/** A document in the user's language, as far as there are words. */
import type { Document } from './document.ts';

type Words = (text: string) => string;

const texts = new Set([
    'title',
    'description',
    'summary',
    'x-summary',
    'x-parent',
    'confirm',
    'empty',
    'question'
]);
/** Values of the author's, which are sent as they are. */
const kept = new Set(['default', 'const', 'enum', 'examples', 'x-locales']);
/** What holds names of the author's, not texts. */
const named = new Set(['properties', 'schemas', 'paths']);

/** The document with every text that a reader sees in other words. Keys, values and names stay. */
export function translated(document: Document, words: Words): Document {
    return walk(document, words, false) as Document;
}

/** @param isNamed - the keys of the value are names: `title` is one of them */
function walk(value: unknown, words: Words, isNamed: boolean): unknown {
    if (Array.isArray(value)) {
        return value.map((each) => walk(each, words, false));
    }
    if (typeof value !== 'object' || value === null) {
        return value;
    }
    return Object.fromEntries(
        Object.entries(value).map(([key, each]) => [
            key,
            !isNamed && texts.has(key) && typeof each === 'string'
                ? words(each)
                : !isNamed && kept.has(key)
                  ? each
                  : walk(each, words, !isNamed && named.has(key))
        ])
    );
}
