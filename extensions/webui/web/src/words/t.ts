/** Sentences in the user's language. The English sentence is the key; other languages are a table of it. */
export type Table = Readonly<Record<string, string>>;

/** A sentence with values, as it comes from the panel with them filled in. */
interface Pattern {
    readonly whole: RegExp;
    readonly names: readonly string[];
    readonly key: string;
}

let table: Table = {};
let brought: Table = {};
let patterns: readonly Pattern[] | null = null;

/** Takes the words of a language; none for English. */
export function setWords(words: Table): void {
    table = words;
    patterns = null;
}

/** Takes the words that plugins bring for what they say; the panel's own go before them. */
export function addWords(words: Table): void {
    brought = { ...brought, ...words };
    patterns = null;
}

/** A sentence in the user's language; `{name}` stands for a value. */
export function t(sentence: string, values: Readonly<Record<string, string | number>> = {}): string {
    return filled(table[sentence] ?? sentence, values);
}

function filled(sentence: string, values: Readonly<Record<string, string | number>>): string {
    return sentence.replace(/\{(\w+)\}/g, (all, name: string) =>
        values[name] === undefined ? all : String(values[name])
    );
}

/** A text of the panel in the user's language: one sentence, or several with a semicolon between them, whose values are filled in already. */
export function said(text: string): string {
    return (
        wordsFor(text) ??
        fromPattern(text, (key) => key.includes('; ')) ??
        text
            .split('; ')
            .map((part) => wordsFor(part) ?? inParts(part) ?? fromPattern(part) ?? part)
            .join('; ')
    );
}

const wordsFor = (text: string): string | undefined => table[text] ?? brought[text];

/** A sentence with what it is about behind a colon, as failures have it. */
function inParts(text: string): string | null {
    const at = text.indexOf(': ');
    const first = wordsFor(text.slice(0, Math.max(at, 0)));
    return first === undefined ? null : `${first}: ${said(text.slice(at + 2))}`;
}

function fromPattern(text: string, isMeant: (key: string) => boolean = () => true): string | null {
    patterns ??= Object.keys({ ...brought, ...table })
        .filter((key) => key.includes('{'))
        .map(patternOf)
        // What says most by itself fits best.
        .toSorted((one, other) => other.whole.source.length - one.whole.source.length);
    for (const { whole, names, key } of patterns) {
        const found = isMeant(key) ? whole.exec(text) : null;
        if (found !== null) {
            return filled(
                wordsFor(key) ?? key,
                Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? '']))
            );
        }
    }
    return null;
}

function patternOf(key: string): Pattern {
    const parts = key.split(/\{\w+\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return {
        whole: new RegExp(`^${parts.join('(.+)')}$`),
        names: [...key.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ''),
        key
    };
}
