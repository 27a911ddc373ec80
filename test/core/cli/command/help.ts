import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { commandHelp, overview } from '../../../../core/src/cli/command/help.ts';
import { commands } from '../../../../core/src/cli/commands.ts';
import { variables } from '../../../../core/src/platform/config.ts';
import { oldNode, portico, runHere } from '../../../support/panel/console.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const root = resolve(import.meta.dirname, '../../../..');
const old = oldNode();

describe('docs/command-line.md', () => {
    it('shows every help text as it is', async () => {
        const text = await readFile(resolve(root, 'docs/command-line.md'), 'utf8');
        const shown = [...text.matchAll(/```text\n(Usage: portico [\s\S]*?)\n```/g)].map(
            ([, block]) => block
        );
        expect(shown).to.equal([overview(commands, null), ...commands.map(commandHelp)]);
    });

    it('names the variables that decide where a command works', async () => {
        const text = await readFile(resolve(root, 'docs/command-line.md'), 'utf8');
        for (const name of text.match(/PORTICO_[A-Z_]+/g) ?? []) {
            expect(variables.map((variable) => variable.name)).to.include(name);
        }
    });
});

describe('portico', { timeout: 180_000 }, () => {
    it('shows help and version on standard output, and touches nothing', async () => {
        const version = (
            JSON.parse(await readFile(resolve(root, 'core/package.json'), 'utf8')) as { version: string }
        ).version;
        expect((await portico(['admin', 'create', '--json', 'x', '--help', '--nonsense'])).code).to.equal(0);
        expect((await portico(['dance'])).code).to.equal(2);
        for (const args of [['--help'], ['help'], ['-h']]) {
            expect(await (args[0] === '--help' ? portico : runHere)(args)).to.equal({
                code: 0,
                stdout: `${overview(commands, null)}\n`,
                stderr: ''
            });
        }
        expect(await runHere(['admin', '--help'])).to.equal({
            code: 0,
            stdout: `${overview(commands, 'admin')}\n`,
            stderr: ''
        });
        expect(await portico(['--version'])).to.equal({ code: 0, stdout: `${version}\n`, stderr: '' });
        for (const each of commands) {
            const words = each.name.split(' ');
            expect(await runHere([...words, '--json', 'x', '--help', '--nonsense'])).to.equal({
                code: 0,
                stdout: `${commandHelp(each)}\n`,
                stderr: ''
            });
            expect(await runHere([...words, '--version'])).to.equal({
                code: 0,
                stdout: `${version}\n`,
                stderr: ''
            });
        }
    });

    it('says what is wrong with a call, and exits with 2', async () => {
        const calls: [string[], string][] = [
            [[], 'which command?'],
            [['dance'], 'there is no command "dance"'],
            [['admin'], 'which command of "admin"?'],
            [['admin', 'dance'], 'there is no command "admin dance"'],
            [['token', 'create', '--user'], '--user <value>'],
            [['token', 'create', '--user', ''], '--user is empty'],
            [['token', 'create', '--user', 'a', '--user', 'b'], '--user is given twice'],
            [['token', 'create', '--name', 'a', '--permissions', 'hosts:read'], '--user is missing'],
            [
                ['token', 'create', '--user', 'a', '--name', 'a', '--permissions', 'hosts'],
                '"hosts" is not of the form area:verb'
            ],
            [
                ['token', 'create', '--user', 'a', '--name', 'a', '--permissions', ','],
                '--permissions: the list is empty'
            ],
            [
                [
                    'token',
                    'create',
                    '--user',
                    'a',
                    '--name',
                    'a',
                    '--permissions',
                    'hosts:read',
                    '--expires',
                    'soon'
                ],
                '"soon" is not a time'
            ],
            [
                [
                    'token',
                    'create',
                    '--user',
                    'a',
                    '--name',
                    'a',
                    '--permissions',
                    'hosts:read',
                    '--expires',
                    '2001-01-01'
                ],
                '--expires must lie in the future'
            ],
            [['admin', 'create'], 'the argument <username> is missing'],
            [['admin', 'create', 'a/b'], 'a user name has'],
            [['admin', 'create', 'anna', 'berta'], 'unexpected argument "berta"'],
            [['admin', 'create', 'anna', '--password', 'x'], "Unknown option '--password'"],
            [['admin', 'reset-password', '--password-stdin'], 'standard input is empty'],
            [['doctor', '--verbose'], "Unknown option '--verbose'"],
            [['doctor', '--data-dir='], '--data-dir is empty']
        ];
        for (const [args, message] of calls) {
            const { code, stdout, stderr } = await (args.includes('--password-stdin') ? portico : runHere)(
                args
            );
            expect({ code, stdout }, args.join(' ')).to.equal({ code: 2, stdout: '' });
            expect(stderr, args.join(' ')).to.include(message);
        }
        const { code, stderr } = await portico(['doctor'], { env: { PORTICO_PORT: 'many' } });
        expect(code).to.equal(2);
        expect(stderr).to.include('PORTICO_PORT is "many"');
    });

    itUnless(old === null ? 'there is no older Node on the PATH' : undefined, it)(
        'works from an older Node',
        async () => {
            const node = old ?? '';
            expect((await portico(['--help'], { node })).stdout).to.equal(`${overview(commands, null)}\n`);
            expect((await portico(['dance'], { node })).code).to.equal(2);
        }
    );
});
