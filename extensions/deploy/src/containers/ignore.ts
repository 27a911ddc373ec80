/** `.dockerignore`: which files of a folder are no part of the context of an image. */
import { matchesGlob, posix } from 'node:path';

import type { Folders } from '../releases/folders.ts';

const mostBytes = 2 ** 20;
const mostFiles = 200_000;

/** A line of the file. */
interface Rule {
    readonly pattern: string;
    readonly isException: boolean;
}

/** Patterns of Go match names that begin with a dot, those of Node do not: the dot is no first sign then. */
const undotted = (path: string): string => path.replace(/(^|\/)\./g, '$1\u0001.');

/** A character behind a backslash stands for itself; Node takes a backslash for a separator. */
const plain = (pattern: string): string =>
    pattern.replace(/\\(.)/g, (_, sign: string) => ('*?['.includes(sign) ? `[${sign}]` : sign));

/** Reads the lines of a `.dockerignore`. */
export function readRules(text: string): readonly Rule[] {
    return text
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => {
            const isException = line.startsWith('!');
            const pattern = line.slice(isException ? 1 : 0).trim();
            const cleaned = posix.normalize(plain(pattern)).replace(/^\/+|\/+$/g, '');
            return { isException, pattern: undotted(cleaned) };
        });
}

/** Whether a file is left out: the last line that matches it, or a folder that it lies in, decides. */
export function isIgnored(rules: readonly Rule[], path: string): boolean {
    const steps = undotted(path).split('/');
    const paths = steps.map((_, at) => steps.slice(0, at + 1).join('/'));
    return rules.reduce(
        (ignored, { pattern, isException }) =>
            ignored === isException && paths.some((each) => matchesGlob(each, pattern))
                ? !isException
                : ignored,
        false
    );
}

/**
 * The files and links of a context, sorted; null where all of the folder is. A file that the build itself needs is never left out.
 *
 * @param always - paths below the folder
 */
export async function contextFiles(
    folders: Folders,
    folder: string,
    always: readonly string[]
): Promise<readonly string[] | null> {
    const file = await folders.files.open(`${folder}/.dockerignore`).catch(() => null);
    if (file === null) {
        return null;
    }
    let rules: readonly Rule[];
    try {
        const { size } = await file.stat();
        rules = size > mostBytes ? [] : readRules(await file.readFile('utf8'));
    } finally {
        await file.close();
    }
    const kept = new Set(['.dockerignore', ...always]);
    const found: string[] = [];
    const look = async (path: string): Promise<void> => {
        for (const { name, type } of await folders.files.list(path === '' ? folder : `${folder}/${path}`)) {
            const inner = path === '' ? name : `${path}/${name}`;
            if (type === 'folder') {
                await look(inner);
            } else if ((kept.has(inner) || !isIgnored(rules, inner)) && found.length < mostFiles) {
                found.push(inner);
            }
        }
    };
    await look('');
    return found.sort();
}
