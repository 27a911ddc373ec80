import { resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { ESLint } from 'eslint';

export const lab = Lab.script();
const { describe, it, before } = lab;

const ROOT = resolve(import.meta.dirname, '../..');
const SOURCE = 'core/src/platform/errors.ts';
const TEST = 'test/tools/lint.ts';

// What is written, where, and the rules that must speak.
const PLANTS: [what: string, file: string, code: string, rules: string[]][] = [
    [
        'a shell from exec',
        SOURCE,
        "import { exec } from 'node:child_process';\nexport const e = exec;\n",
        ['no-restricted-imports']
    ],
    [
        'child_process without its prefix',
        SOURCE,
        "import { spawn } from 'child_process';\nexport const s = spawn;\n",
        ['no-restricted-imports']
    ],
    ['a shell from an option', SOURCE, 'export const options = { shell: true };\n', ['no-restricted-syntax']],
    [
        'a shell from an option that is computed',
        SOURCE,
        'export const options = (shell: boolean): object => ({ shell });\n',
        ['no-restricted-syntax']
    ],
    [
        'an unguarded request',
        SOURCE,
        "export const answer = (): Promise<unknown> => fetch('http://10.0.0.1');\n",
        ['no-restricted-globals']
    ],
    [
        'a connection past the guarded client',
        SOURCE,
        "import { connect } from 'node:net';\nexport const c = connect;\n",
        ['no-restricted-imports']
    ],
    [
        'a request past the guarded client',
        SOURCE,
        "import { request } from 'node:https';\nexport const r = request;\n",
        ['no-restricted-imports']
    ],
    [
        'a whole network module',
        SOURCE,
        "import * as http from 'node:http';\nexport const r = http;\n",
        ['no-restricted-imports']
    ],
    ['a word on the console', SOURCE, "console.log('here');\n", ['no-console']],
    [
        'a promise that nobody waits for',
        SOURCE,
        "export function start(): void {\n    Promise.reject(new Error('lost'));\n}\n",
        ['@typescript-eslint/no-floating-promises']
    ],
    [
        'a disabled rule without a reason',
        SOURCE,
        "// eslint-disable-next-line no-console\nconsole.log('here');\n",
        ['portico/explained']
    ],
    [
        'a disabled rule that disables nothing',
        SOURCE,
        '// eslint-disable-next-line no-console -- nothing to see\nexport const a = 1;\n',
        ['unused']
    ],
    ['any', SOURCE, 'export const a: any = 1;\n', ['@typescript-eslint/no-explicit-any']],
    [
        'an ignored type error',
        SOURCE,
        '// @ts-ignore\nexport const a: string = 1;\n',
        ['@typescript-eslint/ban-ts-comment']
    ],
    [
        'an interface with a prefix',
        SOURCE,
        'export interface IHost { id: number }\n',
        ['@typescript-eslint/naming-convention']
    ],
    [
        'a test that hides the others',
        TEST,
        "declare const it: { only(title: string): void };\nit.only('runs alone');\n",
        ['no-restricted-syntax']
    ],
    [
        'a test that is switched off',
        TEST,
        "declare const it: { skip(title: string): void };\nit.skip('is late');\n",
        ['no-restricted-syntax']
    ]
];

const FINE: [what: string, file: string, code: string][] = [
    [
        'a program with a list of arguments',
        SOURCE,
        "import { spawn } from 'node:child_process';\nspawn('caddy', ['run'], { shell: false });\n"
    ],
    [
        'a disabled rule with its reason',
        SOURCE,
        "// eslint-disable-next-line no-console -- the log is not open yet\nconsole.log('here');\n"
    ],
    ['a server', SOURCE, "import { createServer } from 'node:http';\nexport const s = createServer;\n"],
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
        eslint = new ESLint({ cwd: ROOT });
    });

    for (const [what, file, code, rules] of PLANTS) {
        it(`refuse ${what}`, async () => {
            expect(await broken(file, code)).to.equal(rules);
        });
    }

    for (const [what, file, code] of FINE) {
        it(`accept ${what}`, async () => {
            expect(await broken(file, code)).to.equal([]);
        });
    }

    async function broken(file: string, code: string): Promise<string[]> {
        const [result] = await eslint.lintText(code, { filePath: resolve(ROOT, file) });
        return (result?.messages ?? []).map(
            (message) =>
                message.ruleId ??
                (message.message.startsWith('Unused eslint-disable') ? 'unused' : message.message)
        );
    }
});
