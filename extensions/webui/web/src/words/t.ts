/** Sentences in the user's language. The English sentence is the key; other languages are a table of it. */
export type Table = Readonly<Record<string, string>>;

let table: Table = {};

/** Takes the words of a language; none for English. */
export function setWords(words: Table): void {
    table = words;
}

/** A sentence in the user's language; `{name}` stands for a value. */
export function t(sentence: string, values: Readonly<Record<string, string | number>> = {}): string {
    return (table[sentence] ?? sentence).replace(/\{(\w+)\}/g, (all, name: string) =>
        values[name] === undefined ? all : String(values[name])
    );
}
