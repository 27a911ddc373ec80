/** Reads the parts of the repository's pages that tests compare with the code. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A fenced block: three backticks, the language, and after it a name, where it has one. */
export interface Block {
    readonly language: string;
    readonly name: string | null;
    readonly text: string;
}

/** Root of the repository, absolute. */
export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** README.md and everything below docs/, relative to the root. */
export function pages(): readonly string[] {
    const below = readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true }).filter(
        (entry) => entry.isFile() && entry.name.endsWith('.md')
    );
    return ['README.md', ...below.map((entry) => relative(root, join(entry.parentPath, entry.name))).sort()];
}

/** @param name - relative to the root */
export function readPage(name: string): string {
    return readFileSync(join(root, name), 'utf8');
}

export function blocksOf(page: string): readonly Block[] {
    return [...page.matchAll(/^```(\S+)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(
        ([, language = '', name, text = '']) => ({ language, name: name ?? null, text })
    );
}

/** The rows of a table behind `<!-- checked: name -->`, without its head; cells as they are written. @throws Error when there is none */
export function checkedRows(page: string, name: string): readonly (readonly string[])[] {
    const section = new RegExp(`<!-- checked: ${name} -->([\\s\\S]*?)<!-- end -->`).exec(page)?.[1];
    if (section === undefined) {
        throw new Error(`There is no table ${name}`);
    }
    return rowsOf(section);
}

/** The rows of all tables in a text, without their heads. */
export function rowsOf(text: string): readonly (readonly string[])[] {
    const lines = text.split('\n').map((line) => line.trim());
    const inTable = lines.filter(
        (line, at) => line.startsWith('|') && !isRule(line) && !isRule(lines[at + 1] ?? '')
    );
    return inTable.map((line) =>
        line
            .slice(1, -1)
            .split(/(?<!\\)\|/)
            .map((cell) => cell.trim())
    );
}

/** Links to other pages and places, except those to the web and those in code. */
export function linksOf(page: string): readonly string[] {
    const prose = page.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');
    return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of a page's headings, as sites that show Markdown make them. */
export function anchorsOf(page: string): ReadonlySet<string> {
    const headings = page.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.+)$/gm);
    return new Set(
        [...headings].map(([, text = '']) =>
            text
                .toLowerCase()
                .replace(/[^\p{L}\p{N} _-]/gu, '')
                .replaceAll(' ', '-')
        )
    );
}

const isRule = (line: string): boolean => /^\|[-|: ]+$/.test(line) && line.includes('-');
