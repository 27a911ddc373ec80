/** The package as it would be published. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';

import { doubtful, type Finding, wrong } from './finding.ts';

type Fields = Readonly<Record<string, unknown>>;

const supplied = ['@portico/sdk', '@mikro-orm/core', '@mikro-orm/sqlite'];

/** Looks at package.json without running any code. */
export async function checkPackage(packageJson: Fields): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    const list = (name: string): Fields => (packageJson[name] ?? {}) as Fields;
    const isListed =
        Array.isArray(packageJson['keywords']) && packageJson['keywords'].includes('portico-plugin');
    if (!isListed) {
        findings.push(
            wrong(
                'package',
                'package.json',
                'It lacks the keyword portico-plugin',
                'Add "keywords": ["portico-plugin"]: panels find plugins by it'
            )
        );
    }
    if (packageJson['type'] !== 'module') {
        findings.push(wrong('package', 'package.json', 'It is not an ES module', 'Add "type": "module"'));
    }
    if (list('peerDependencies')['@portico/sdk'] === undefined) {
        findings.push(
            wrong(
                'package',
                'package.json',
                'It does not name the SDK as a peer',
                'Add "peerDependencies": { "@portico/sdk": "^1.0.0" }: the panel supplies it'
            )
        );
    }
    const bundled = ['bundleDependencies', 'bundledDependencies'].flatMap((name) =>
        Array.isArray(packageJson[name]) ? (packageJson[name] as string[]) : []
    );
    for (const name of supplied.filter(
        (each) =>
            list('dependencies')[each] !== undefined ||
            list('optionalDependencies')[each] !== undefined ||
            bundled.includes(each)
    )) {
        findings.push(
            wrong(
                'package',
                'package.json',
                `${name} is among its dependencies`,
                'Move it to "peerDependencies" and "devDependencies": a second copy in one process is refused'
            )
        );
    }
    const scripts = ['preinstall', 'install', 'postinstall'].filter(
        (name) => list('scripts')[name] !== undefined
    );
    if (scripts.length > 0) {
        findings.push(
            wrong(
                'package',
                'package.json',
                `It has a script ${scripts.join(', ')}`,
                'Remove it: a panel never runs install scripts; do that work in onStart'
            )
        );
    }
    if (packageJson['files'] === undefined) {
        findings.push(
            doubtful(
                'package',
                'package.json',
                'It does not say which files are published',
                'Add "files": ["dist"], or tests and sources go along'
            )
        );
    }
    if (packageJson['description'] === undefined) {
        findings.push(
            doubtful(
                'package',
                'package.json',
                'It has no description',
                'Say in one line what the plugin is for: lists of plugins show it'
            )
        );
    }
    return findings;
}

/** Path of the file that "exports" names, absolute; null when there is none. */
export async function entryOf(folder: string, { exports, main }: Fields): Promise<string | null> {
    const isSource = process.execArgv.some(
        (each, at, all) =>
            each === '--conditions=portico-source' ||
            (/^(-C|--conditions)$/.test(each) && all[at + 1] === 'portico-source')
    );
    const known = new Set([
        ...(isSource ? ['portico-source'] : []),
        'node',
        'import',
        'module-sync',
        'default'
    ]);
    const root = typeof exports === 'object' && exports !== null && '.' in exports ? exports['.'] : exports;
    const target = root === undefined || root === null ? (main ?? './index.js') : targetOf(root, known);
    if (typeof target !== 'string') {
        return null;
    }
    const path = await realpath(join(folder, target)).catch(() => null);
    return path?.startsWith((await realpath(folder)) + sep) === true && (await stat(path)).isFile()
        ? path
        : null;
}

/** @throws Error when there is no package.json, or none that can be read */
export async function readPackageJson(folder: string): Promise<Fields> {
    return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Fields;
}

function targetOf(value: unknown, known: ReadonlySet<string>): string | null {
    if (typeof value === 'string') {
        return value;
    }
    if (Array.isArray(value)) {
        return value.map((each) => targetOf(each, known)).find((each) => each !== null) ?? null;
    }
    return typeof value === 'object' && value !== null
        ? (Object.entries(value)
              .filter(([condition]) => known.has(condition))
              .map(([, inner]) => targetOf(inner, known))
              .find((each) => each !== null) ?? null)
        : null;
}
