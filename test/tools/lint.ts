import { resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { ESLint } from 'eslint';

export const lab = Lab.script();
const { describe, it, before } = lab;

const root = resolve(import.meta.dirname, '../..');
const source = 'core/src/platform/errors.ts';
const testFile = 'test/tools/lint.ts';

// What is written, where, and the rules that must speak.
const plants: [what: string, file: string, code: string, rules: string[]][] = [
    [
        'a shell from exec',
        source,
        "import { exec } from 'node:child_process';\nexport const e = exec;\n",
        ['no-restricted-imports']
    ],
    [
        'child_process without its prefix',
        source,
        "import { spawn } from 'child_process';\nexport const s = spawn;\n",
        ['no-restricted-imports']
    ],
    ['a shell from an option', source, 'export const options = { shell: true };\n', ['no-restricted-syntax']],
    [
        'a shell from an option that is computed',
        source,
        'export const options = (shell: boolean): object => ({ shell });\n',
        ['no-restricted-syntax']
    ],
    [
        'an unguarded request',
        source,
        "export const answer = (): Promise<unknown> => fetch('http://10.0.0.1');\n",
        ['no-restricted-globals']
    ],
    [
        'a connection past the guarded client',
        source,
        "import { connect } from 'node:net';\nexport const c = connect;\n",
        ['no-restricted-imports']
    ],
    [
        'a request past the guarded client',
        source,
        "import { request } from 'node:https';\nexport const r = request;\n",
        ['no-restricted-imports']
    ],
    [
        'a whole network module',
        source,
        "import * as http from 'node:http';\nexport const r = http;\n",
        ['no-restricted-imports']
    ],
    ['a word on the console', source, "console.log('here');\n", ['no-console']],
    [
        'a promise that nobody waits for',
        source,
        "export function start(): void {\n    Promise.reject(new Error('lost'));\n}\n",
        ['@typescript-eslint/no-floating-promises']
    ],
    [
        'a disabled rule without a reason',
        source,
        "// eslint-disable-next-line no-console\nconsole.log('here');\n",
        ['portico/explained']
    ],
    [
        'a disabled rule that disables nothing',
        source,
        '// eslint-disable-next-line no-console -- nothing to see\nexport const a = 1;\n',
        ['unused']
    ],
    ['any', source, 'export const a: any = 1;\n', ['@typescript-eslint/no-explicit-any']],
    [
        'an ignored type error',
        source,
        '// @ts-ignore\nexport const a: string = 1;\n',
        ['@typescript-eslint/ban-ts-comment']
    ],
    [
        'an interface with a prefix',
        source,
        'export interface IHost { id: number }\n',
        ['@typescript-eslint/naming-convention']
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
        'a program with a list of arguments',
        source,
        "import { spawn } from 'node:child_process';\nspawn('caddy', ['run'], { shell: false });\n"
    ],
    [
        'a disabled rule with its reason',
        source,
        "// eslint-disable-next-line no-console -- the log is not open yet\nconsole.log('here');\n"
    ],
    ['a server', source, "import { createServer } from 'node:http';\nexport const s = createServer;\n"],
    [
        'a connection of the guarded client',
        'core/src/platform/outbound/dial.ts',
        "import { connect } from 'node:net';\nexport const c = connect;\n"
    ],
    ['the console in the command line', 'core/src/main.ts', "console.log('here');\n"]
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
