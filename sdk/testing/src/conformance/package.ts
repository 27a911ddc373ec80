/** The package of a plugin as it would be published, looked at without running any code. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';

import { errorOf, type Finding, warningOf } from './finding.ts';

type Fields = Readonly<Record<string, unknown>>;

const file = 'package.json';
const supplied = ['@portico/sdk', '@mikro-orm/core', '@mikro-orm/sqlite'];
const installScripts = ['preinstall', 'install', 'postinstall'];

/** Holds package.json against what every plugin's says. */
export function checkPackage(fields: Fields): readonly Finding[] {
    const names = (field: string): readonly string[] =>
        Array.isArray(fields[field])
            ? (fields[field] as string[])
            : Object.keys((fields[field] ?? {}) as object);
    const carried = [
        'dependencies',
        'optionalDependencies',
        'bundleDependencies',
        'bundledDependencies'
    ].flatMap(names);
    const scripts = installScripts.filter((name) => names('scripts').includes(name));
    const errors: readonly (readonly [isWrong: boolean, message: string, mend: string])[] = [
        [
            !names('keywords').includes('portico-plugin'),
            'It lacks the keyword portico-plugin',
            'Add "keywords": ["portico-plugin"]: panels find plugins by it'
        ],
        [fields['type'] !== 'module', 'It is not an ES module', 'Add "type": "module"'],
        [
            !names('peerDependencies').includes('@portico/sdk'),
            'It does not name the SDK as a peer',
            'Add "peerDependencies": { "@portico/sdk": "^1.0.0" }: the panel supplies it'
        ],
        ...supplied.map(
            (name) =>
                [
                    carried.includes(name),
                    `${name} is among its dependencies`,
                    'Move it to "peerDependencies" and "devDependencies": a second copy in one process is refused'
                ] as const
        ),
        [
            scripts.length > 0,
            `It has a script ${scripts.join(', ')}`,
            'Remove it: a panel never runs install scripts; do that work in onStart'
        ]
    ];
    const warnings: typeof errors = [
        [
            fields['files'] === undefined,
            'It does not say which files are published',
            'Add "files": ["dist"], or tests and sources go along'
        ],
        [
            fields['description'] === undefined,
            'It has no description',
            'Say in one line what the plugin is for: lists of plugins show it'
        ]
    ];
    return [
        ...errors
            .filter(([isWrong]) => isWrong)
            .map(([, message, mend]) => errorOf('package', file, message, mend)),
        ...warnings
            .filter(([isWrong]) => isWrong)
            .map(([, message, mend]) => warningOf('package', file, message, mend))
    ];
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
    const isInside = path?.startsWith((await realpath(folder)) + sep) === true;
    return isInside && (await stat(path)).isFile() ? path : null;
}

/** @throws Error when there is no package.json, or none that can be read */
export async function readPackageJson(folder: string): Promise<Fields> {
    return JSON.parse(await readFile(join(folder, file), 'utf8')) as Fields;
}

function targetOf(value: unknown, known: ReadonlySet<string>): string | null {
    if (typeof value === 'string') {
        return value;
    }
    const inner = Array.isArray(value)
        ? (value as unknown[])
        : Object.entries((value ?? {}) as object).flatMap(([condition, each]: [string, unknown]) =>
              known.has(condition) ? [each] : []
          );
    return inner.map((each) => targetOf(each, known)).find((each) => each !== null) ?? null;
}
