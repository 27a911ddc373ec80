import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { reservedNames } from '../../../../core/src/composition/plugins/reserved-names.ts';
import { root as repository } from '../../../support/docs/markdown.ts';
import { portico } from '../../../support/panel/console.ts';
import { startPanel } from '../../../support/panel/panel.ts';
import { ended } from '../../../support/plugins/panel.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const run = promisify(execFile);

describe('portico plugin create', { timeout: 300_000 }, () => {
    let root: string;
    let plugin: string;
    let env: NodeJS.ProcessEnv;

    before({ timeout: 300_000 }, async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-create-'));
        plugin = join(root, 'bottles');
        env = { PATH: `${join(repository, 'node_modules/.bin')}${delimiter}${process.env['PATH']}` };
        expect(await portico(['plugin', 'create', 'bottles'], { cwd: root, env })).to.include({
            code: 0,
            stdout: `${plugin}\n`
        });
    });

    after(() => rmSync(root, { recursive: true, force: true }));

    const npm = async (...args: readonly string[]): Promise<string> => {
        const { NODE_TEST_CONTEXT: _inside, ...inherited } = process.env;
        return (
            await run('npm', [...args], { cwd: plugin, env: { ...inherited, ...env } }).catch(
                (error: unknown) => {
                    throw new Error(
                        `${(error as { stdout: string }).stdout}${(error as { stderr: string }).stderr}`
                    );
                }
            )
        ).stdout;
    };

    it('links the new package to this checkout, and brings nothing else but the compiler', async () => {
        const file = join(plugin, 'package.json');
        const written = JSON.parse(readFileSync(file, 'utf8')) as {
            readonly devDependencies: Readonly<Record<string, string>>;
        };
        expect(written.devDependencies).to.equal({
            '@portico/sdk': `file:${relative(plugin, join(repository, 'sdk'))}`,
            '@portico/testing': `file:${relative(plugin, join(repository, 'sdk/testing'))}`,
            '@types/node': '^24.0.0',
            typescript: '^7.0.0'
        });
        // What a registry would give lies in the checkout too: so this needs no network.
        const local = Object.fromEntries(
            Object.entries({ '@types/node': '@types/node', typescript: '@typescript/native' }).map(
                ([name, place]) => [name, `file:${join(repository, 'node_modules', place)}`]
            )
        );
        writeFileSync(
            file,
            JSON.stringify({ ...written, devDependencies: { ...written.devDependencies, ...local } }, null, 2)
        );
        const before_ = readdirSync(join(repository, 'sdk/testing'));
        await npm('install', '--offline', '--loglevel=error');
        expect(readdirSync(join(repository, 'sdk/testing'))).to.equal(before_);
        const { packages } = JSON.parse(readFileSync(join(plugin, 'package-lock.json'), 'utf8')) as {
            readonly packages: object;
        };
        expect(Object.keys(packages).filter((place) => place.startsWith('node_modules/'))).to.only.include([
            'node_modules/@portico/sdk',
            'node_modules/@portico/testing',
            'node_modules/@types/node',
            'node_modules/typescript'
        ]);
    });

    it('writes a package whose tests pass, and that is packed', async () => {
        expect(await npm('test')).to.match(/pass 2/);
        await npm('pack', '--loglevel=error');
        const { stdout } = await run('tar', ['-tzf', join(plugin, 'portico-plugin-bottles-0.1.0.tgz')]);
        expect(stdout.trim().split('\n').sort()).to.equal([
            'package/README.md',
            'package/dist/index.d.ts',
            'package/dist/index.js',
            'package/package.json'
        ]);
    });

    it('writes a plugin that passes the suite, from its folder and from its archive', async () => {
        for (const place of ['.', 'portico-plugin-bottles-0.1.0.tgz']) {
            const { code, stdout, stderr } = await portico(
                ['plugin', 'test', place, '--cycles', '3', '--json'],
                { cwd: plugin, env }
            );
            expect(code, stdout + stderr).to.equal(0);
            expect((JSON.parse(stdout) as { checked: string[] }).checked).to.equal([
                'package',
                'manifest',
                'import',
                'start',
                'routes',
                'labels',
                'places',
                'readme',
                'database',
                'requests',
                'cycles',
                'threads'
            ]);
        }
        const validated = await portico(['plugin', 'validate', plugin], { env });
        expect(validated).to.include({ code: 0, stderr: '' });
        expect(validated.stdout).to.not.contain('warn');
    });

    it('writes what a panel installs and runs', async () => {
        const panel = await startPanel();
        try {
            await panel.panel.settled();
            const archive = readFileSync(join(plugin, 'portico-plugin-bottles-0.1.0.tgz'));
            const answer = await fetch(`http://127.0.0.1:${panel.port}/api/plugins`, {
                method: 'POST',
                headers: {
                    authorization: `Bearer ${panel.client.token}`,
                    'content-type': 'application/gzip'
                },
                body: new Uint8Array(archive)
            });
            const { data } = (await answer.json()) as { readonly data: never };
            expect(answer.status, JSON.stringify(data)).to.equal(202);
            const task = await ended(panel.client, {
                status: answer.status,
                data,
                text: ''
            });
            expect(task.result).to.include({ plugin: 'bottles', version: '0.1.0', state: 'running' });
            expect((await panel.client.get('/api/plugins/bottles/hello?name=Ann')).data).to.equal({
                text: 'Hello, Ann'
            });
        } finally {
            await panel.close();
        }
    });

    it('says what is wrong with a plugin, and how to mend it', async () => {
        const file = join(plugin, 'package.json');
        const text = readFileSync(file, 'utf8');
        const change = async (portico_: object): Promise<string> => {
            writeFileSync(file, JSON.stringify({ ...(JSON.parse(text) as object), portico: portico_ }));
            const { code, stdout } = await portico(['plugin', 'validate', plugin], { env });
            expect(code).to.equal(1);
            return stdout;
        };
        try {
            expect(await change({ name: 'bottles', sdk: '^1.0.0', colour: 'red' })).to.contain(
                'FAIL  manifest  MANIFEST_UNKNOWN_KEY: portico.colour is not allowed'
            );
            expect(await change({ name: 'hosts', sdk: '^1.0.0' }))
                .to.contain('NAME_RESERVED')
                .and.to.contain('→ Choose another name');
            expect(await change({ name: 'bottles', sdk: '^2.0.0' })).to.contain('SDK_RANGE');
        } finally {
            writeFileSync(file, text);
        }
        expect(await portico(['plugin', 'validate', join(root, 'nowhere')])).to.include({
            code: 1,
            stderr: `portico: There is no ${join(root, 'nowhere')}\n`
        });
        writeFileSync(join(root, 'not.tgz'), 'x');
        expect((await portico(['plugin', 'validate', join(root, 'not.tgz')])).stderr).to.contain(
            'is not an archive that npm pack wrote'
        );
    });

    it('refuses names that are none and places that are taken, and writes nothing', async () => {
        const before_ = readdirSync(root);
        const said = async (...args: readonly string[]): Promise<string> => {
            const { code, stderr } = await portico(['plugin', 'create', ...args], { cwd: root });
            expect(code).to.equal(stderr.includes('exists already') ? 1 : 2);
            return stderr;
        };
        expect(await said('hosts')).to.contain('The name hosts belongs to the core');
        expect(await said('Bottles', '--package', 'x')).to.contain(
            '"Bottles" cannot be the name of a plugin'
        );
        expect(await said('b', '--package', 'x')).to.contain('cannot be the name of a plugin');
        expect(await said('../up', '--package', 'x')).to.contain('cannot be the name of a plugin');
        expect(await said('fine', '--package', 'No Name')).to.contain('is not the name of an npm package');
        expect(await said('bottles')).to.contain(`${plugin} exists already`);
        expect(await said('fine', '--dir', 'bottles/src')).to.contain('exists already');
        expect(readdirSync(root)).to.equal(before_);
    });

    it('takes the SDK from where it is told, and links to nothing then', async () => {
        expect(
            (
                await portico(
                    [
                        'plugin',
                        'create',
                        'other',
                        '--dir',
                        'deep/er/other',
                        '--package',
                        '@acme/other',
                        '--sdk',
                        '^1.2.0'
                    ],
                    { cwd: root }
                )
            ).code
        ).to.equal(0);
        const place = join(root, 'deep/er/other');
        expect(JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))).to.include({
            name: '@acme/other',
            devDependencies: {
                '@portico/sdk': '^1.2.0',
                '@portico/testing': '^1.0.0',
                '@types/node': '^24.0.0',
                typescript: '^7.0.0'
            }
        });
        expect(readFileSync(join(place, '.gitignore'), 'utf8')).to.equal('node_modules/\ndist/\n');
        const files = readdirSync(place, { recursive: true, withFileTypes: true }).filter((entry) =>
            entry.isFile()
        );
        expect(
            files
                .filter((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').includes('{{'))
                .map(({ name }) => name)
        ).to.equal([]);
    });
});

describe('reservedNames', { timeout: 120_000 }, () => {
    it('are those of the panel: the groups of its routes and the areas of its permissions', async () => {
        const panel = await startPanel();
        try {
            const { paths } = JSON.parse((await panel.client.get('/api/openapi.json')).text) as {
                paths: object;
            };
            const groups = new Set(
                Object.keys(paths)
                    .filter((path) => path.startsWith('/api/'))
                    .map((path) => /^\/api\/([a-z0-9-]+)/.exec(path)?.[1] ?? '')
            );
            expect([...groups].filter((group) => !reservedNames.has(group))).to.equal([]);
        } finally {
            await panel.close();
        }
    });
});
