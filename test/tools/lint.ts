import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { ESLint } from 'eslint';

export const lab = Lab.script();
const { describe, it, before } = lab;

const run = promisify(execFile);

const root = resolve(import.meta.dirname, '../..');
const source = 'core/src/platform/errors.ts';
const testFile = 'test/tools/lint.ts';

// Each entry: the text, its file, and the rules that must report it.
const plants: [what: string, file: string, code: string, rules: string[]][] = [
    [
        'a shell from exec',
        source,
        "import { exec } from 'node:child_process';\n/** Planted by a test. */\nexport const e = exec;\n",
        ['no-restricted-imports']
    ],
    [
        'child_process without its prefix',
        source,
        "import { spawn } from 'child_process';\n/** Planted by a test. */\nexport const s = spawn;\n",
        ['no-restricted-imports']
    ],
    [
        'a shell from an option',
        source,
        '/** Planted by a test. */\nexport const options = { shell: true };\n',
        ['no-restricted-syntax']
    ],
    [
        'a shell from an option that is computed',
        source,
        '/** Planted by a test. */\nexport const options = (shell: boolean): object => ({ shell });\n',
        ['no-restricted-syntax']
    ],
    [
        'an unguarded request',
        source,
        "/** Planted by a test. */\nexport const answer = (): Promise<unknown> => fetch('http://10.0.0.1');\n",
        ['no-restricted-globals']
    ],
    [
        'a connection past the guarded client',
        source,
        "import { connect } from 'node:net';\n/** Planted by a test. */\nexport const c = connect;\n",
        ['no-restricted-imports']
    ],
    [
        'a request past the guarded client',
        source,
        "import { request } from 'node:https';\n/** Planted by a test. */\nexport const r = request;\n",
        ['no-restricted-imports']
    ],
    [
        'a whole network module',
        source,
        "import * as http from 'node:http';\n/** Planted by a test. */\nexport const r = http;\n",
        ['no-restricted-imports']
    ],
    ['a word on the console', source, "console.log('here');\n", ['no-console']],
    [
        'a disabled rule without a reason',
        source,
        "// eslint-disable-next-line no-console\nconsole.log('here');\n",
        ['portico/explained-disable']
    ],
    [
        'a disabled rule that disables nothing',
        source,
        '// eslint-disable-next-line no-console -- nothing to see\n/** Planted by a test. */\nexport const a = 1;\n',
        ['unused']
    ],
    [
        'any',
        source,
        '/** Planted by a test. */\nexport const a: any = 1;\n',
        ['@typescript-eslint/no-explicit-any']
    ],
    [
        'an ignored type error',
        source,
        '// @ts-ignore\n/** Planted by a test. */\nexport const a: string = 1;\n',
        ['@typescript-eslint/ban-ts-comment']
    ],
    [
        'an interface with a prefix',
        source,
        '/** Planted by a test. */\nexport interface IHost { id: number }\n',
        ['portico/name-form']
    ],
    ['an export without a comment', source, 'export const a = 1;\n', ['portico/documented-export']],
    [
        'an export whose comment says nothing',
        source,
        '/** A port. */\nexport interface Port { id: number }\n',
        ['portico/documented-export']
    ],
    [
        'a cast without a reason',
        source,
        '/** Planted by a test. */\nexport const a = 1 as unknown as string;\n',
        ['portico/explained-cast']
    ],
    [
        'two casts in a row without a reason',
        source,
        '/** Planted by a test. */\nexport const a = 1 as number | string as string;\n',
        ['portico/explained-cast']
    ],
    [
        'a cast below the reason of something else',
        source,
        '/** Planted by a test. */\nexport const a = 1; // the first\n/** Planted by a test. */ export const b = 1 as never;\n',
        ['portico/explained-cast']
    ],
    [
        'a cast without a reason in a test',
        testFile,
        'declare const take: (text: string) => void;\ntake(1 as never);\n',
        ['portico/explained-cast']
    ],
    [
        'a word that the glossary replaces',
        source,
        '/** Planted by a test. */\nexport class EngineKeeper {}\n',
        ['portico/glossary']
    ],
    [
        'a member with such a word',
        source,
        '/** Planted by a test. */\nexport interface Plugins { settlePlugin(): void }\n',
        ['portico/glossary']
    ],
    [
        'a comment that hides who acts',
        source,
        '/** For whoever asks the panel. */\nexport const a = 1;\n',
        ['portico/glossary']
    ],
    [
        'a message that hides who acts',
        source,
        "/** Planted by a test. */\nexport const a = 'Somebody holds the lock';\n",
        ['portico/glossary']
    ],
    [
        'a title of a test that hides who acts',
        testFile,
        "declare const it: (title: string) => void;\nit('lets nobody in');\n",
        ['portico/glossary']
    ],
    [
        'a parameter with a word that the glossary replaces',
        source,
        '/** Planted by a test. */\nexport const tell = (engineKeeper: string): string => engineKeeper;\n',
        ['portico/glossary']
    ],
    [
        'a constant in capitals',
        source,
        '/** Planted by a test. */\nexport const LIMIT = 1;\n',
        ['portico/name-form']
    ],
    [
        'a function that fits no screen',
        source,
        `/** Planted by a test. */\nexport function tell(): void {\n${'    void 0;\n'.repeat(80)}}\n`,
        ['max-lines-per-function']
    ],
    [
        'two imports of one module',
        source,
        "import type { Stats } from 'node:fs';\nimport { statSync } from 'node:fs';\n/** Planted by a test. */\nexport const a = (path: string): Stats => statSync(path);\n",
        ['no-duplicate-imports']
    ],
    [
        'imports in another order',
        source,
        "import type { Logger } from './log.ts';\nimport type { Stats } from 'node:fs';\n\n/** Planted by a test. */\nexport type Both = Logger | Stats;\n",
        ['simple-import-sort/imports']
    ],
    [
        'a test that hides the others',
        testFile,
        "declare const it: { only(title: string): void };\nit.only('runs alone');\n",
        ['no-restricted-syntax']
    ],
    [
        'a test that is switched off',
        testFile,
        "declare const it: { skip(title: string): void };\nit.skip('is late');\n",
        ['no-restricted-syntax']
    ]
];

const fine: [what: string, file: string, code: string][] = [
    [
        'a cast with its reason',
        source,
        '// The parser has checked the form.\n/** Planted by a test. */\nexport const a = 1 as unknown as string; // checked by the parser\n'
    ],
    [
        'a wrong value that a test gives on purpose',
        testFile,
        'declare const take: (text: string) => void;\ntake(1 as never); // wrong on purpose\n'
    ],
    [
        'a word that only contains a refused one',
        source,
        '/** Planted: settled, outdoor, frameworks. */\nexport const outdoorFrameworks = 1;\n'
    ],
    [
        'the name of an account that no person has',
        source,
        "/** The program runs as `nobody`. */\nexport const account = 'nobody';\n"
    ],
    [
        'a program with a list of arguments',
        source,
        "import { spawn } from 'node:child_process';\nspawn('caddy', ['run'], { shell: false });\n"
    ],
    [
        'a disabled rule with its reason',
        source,
        "// eslint-disable-next-line no-console -- the log is not open yet\nconsole.log('here');\n"
    ],
    [
        'a server',
        source,
        "import { createServer } from 'node:http';\n/** Planted by a test. */\nexport const s = createServer;\n"
    ],
    [
        'a connection of the guarded client',
        'core/src/platform/outbound/dial.ts',
        "import { connect } from 'node:net';\n/** Planted by a test. */\nexport const c = connect;\n"
    ],
    ['the console in the command line', 'core/src/main.ts', "console.log('here');\n"]
];

// These rules need types: each entry is the text, and the rule of oxlint that must report it, or none.
const typed: [what: string, code: string, rules: string[]][] = [
    [
        'a promise that no code waits for',
        "export function start(): void {\n    Promise.reject(new Error('lost'));\n}\n",
        ['typescript(no-floating-promises)']
    ],
    [
        'a promise where a condition is expected',
        'export const kept = [1].filter(async (n) => n > 0);\n',
        ['typescript(no-misused-promises)']
    ],
    [
        'a wait for what is there already',
        'export async function start(): Promise<void> {\n    await 1;\n}\n',
        ['typescript(await-thenable)']
    ],
    [
        'a promise that leaves a try block before it has failed',
        'export async function read(): Promise<number> {\n    try {\n        return Promise.resolve(1);\n    } catch {\n        return 0;\n    }\n}\n',
        ['typescript(return-await)']
    ],
    [
        'a thrown text',
        "export function stop(): never {\n    throw 'broken';\n}\n",
        ['typescript(only-throw-error)']
    ],
    [
        'a choice that forgets a case',
        "export function say(word: 'on' | 'off'): void {\n    switch (word) {\n        case 'on':\n    }\n}\n",
        ['typescript(switch-exhaustiveness-check)']
    ],
    [
        'a promise that code waits for',
        'export async function start(): Promise<void> {\n    await Promise.resolve();\n}\n',
        []
    ]
];

describe('the lint rules', () => {
    let eslint: ESLint;

    before(() => {
        eslint = new ESLint({ cwd: root });
    });

    for (const [what, file, code, rules] of plants) {
        it(`refuse ${what}`, async () => {
            expect(await broken(file, code)).to.equal(rules);
        });
    }

    for (const [what, file, code] of fine) {
        it(`accept ${what}`, async () => {
            expect(await broken(file, code)).to.equal([]);
        });
    }

    async function broken(file: string, code: string): Promise<string[]> {
        const [result] = await eslint.lintText(code, { filePath: resolve(root, file) });
        return (result?.messages ?? []).map(
            (message) =>
                message.ruleId ??
                (message.message.startsWith('Unused eslint-disable') ? 'unused' : message.message)
        );
    }
});

describe('the lint rules that need types', () => {
    for (const [what, code, rules] of typed) {
        it(`${rules.length > 0 ? 'refuse' : 'accept'} ${what}`, async () => {
            const folder = mkdtempSync(join(tmpdir(), 'lint-'));
            try {
                const file = join(folder, 'planted.ts');
                writeFileSync(file, code);
                const args = ['--type-aware', '-f', 'json', '-c', join(root, '.oxlintrc.json'), file];
                const { stdout } = await run(join(root, 'node_modules/.bin/oxlint'), args).catch(
                    (failed: { stdout: string }) => failed
                );
                const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string }[] };
                expect(diagnostics.map((found) => found.code)).to.equal(rules);
            } finally {
                rmSync(folder, { recursive: true });
            }
        });
    }
});
