/** Texts by language. */

/** One text in several languages, by their tags (`en`, `pt-BR`). */
export type Texts = Readonly<Record<string, string>>;

/** The text in the first language that there is one for: with its region, without it, with another one; then English, then any. Empty where there is none. */
export function inLanguage(texts: Texts, ...languages: readonly (string | undefined)[]): string {
    const byTag = new Map(Object.entries(texts).map(([tag, text]) => [tag.toLowerCase(), text]));
    for (const language of [...languages, 'en']) {
        const tag = language?.toLowerCase() ?? '';
        const [base = ''] = tag.split('-');
        const text =
            byTag.get(tag) ??
            byTag.get(base) ??
            (base === '' ? undefined : [...byTag].find(([each]) => each.startsWith(`${base}-`))?.[1]);
        if (text !== undefined) {
            return text;
        }
    }
    return Object.values(texts)[0] ?? '';
}
