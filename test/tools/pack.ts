import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

// Portico as npm installs it: built, in a real node_modules, on a Node without the private export condition.
describe('npm run release', () => {
    let folder: string;
    let modules: string;

    before({ timeout: 300_000 }, async () => {
        folder = await mkdtemp(join(tmpdir(), 'pack-'));
        modules = join(folder, 'node_modules');
        await run(process.execPath, [join(root, 'tools/pack.mjs'), join(folder, 'tarballs')], { cwd: root });
        for (const tarball of await readdir(join(folder, 'tarballs'))) {
            const home = join(modules, '@portico', /^portico-(\w+)-\d/.exec(tarball)?.[1] ?? tarball);
            await mkdir(home, { recursive: true });
            await run('tar', ['-xzf', join(folder, 'tarballs', tarball), '-C', home, '--strip-components=1']);
        }
        await linkDependencies();
        await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    });

    after(() => rm(folder, { recursive: true, force: true }));

    it('packs what is built and nothing of the sources', async () => {
        for (const name of await readdir(join(modules, '@portico'))) {
            const home = join(modules, '@portico', name);
            expect(await readdir(home))
                .to.include(['LICENSE', 'dist', 'package.json'])
                .and.to.not.include(['src']);
            expect(await readdir(join(home, 'dist'))).to.not.include(['.tsbuildinfo']);
        }
    });

    it('removes the private condition, and what only the repository needs', async () => {
        const text = await readFile(join(modules, '@portico/sdk/package.json'), 'utf8');
        const manifest = JSON.parse(text) as Record<string, unknown>;
        expect(text).to.not.contain('portico-source');
        expect(manifest).to.not.include(['private', 'scripts', 'devDependencies']);
        expect(manifest['exports']).to.include({
            '.': { types: './dist/index.d.ts', default: './dist/index.js' }
        });
    });

    it('gives an SDK that imports, also where the private condition is set', async () => {
        const script = 'import("@portico/sdk").then((sdk) => console.log(typeof sdk.defineErrors))';
        expect((await run(process.execPath, ['-e', script], { cwd: folder })).stdout).to.equal('function\n');
        expect(
            (await run(process.execPath, ['--conditions=portico-source', '-e', script], { cwd: folder }))
                .stdout
        ).to.equal('function\n');
    });

    it("gives types that an author's compiler reads without our sources", { timeout: 120_000 }, async () => {
        await writeFile(
            join(folder, 'author.ts'),
            "import { defineErrors } from '@portico/sdk';\n" + 'export const errors: number = defineErrors;\n'
        );
        const args = [
            join(root, 'node_modules/.bin/tsc'),
            '--noEmit',
            '--strict',
            '--module',
            'nodenext',
            '--target',
            'es2024',
            '--types',
            'node',
            'author.ts'
        ];
        const { stdout } = await run(process.execPath, args, { cwd: folder }).catch(
            (error: { stdout: string }) => error
        );
        // The compiler must report this one mistake, which shows that the types are published.
        expect(
            stdout
                .trim()
                .split('\n')
                .filter((line) => /^\S/.test(line))
        ).to.have.length(1);
        expect(stdout).to.match(/^author\.ts\(2,14\): error TS2322/);
    });

    it('gives a portico command that runs what was built', async () => {
        const { stdout } = await run(
            process.execPath,
            [join(modules, '@portico/core/bin/portico.js'), '--help'],
            { cwd: folder }
        );
        expect(stdout).to.match(/portico/i);
    });

    it('gives a test kit on which the tests of a new plugin pass', { timeout: 120_000 }, async () => {
        const portico = join(modules, '@portico/core/bin/portico.js');
        await run(process.execPath, [portico, 'plugin', 'create', 'bottles'], { cwd: folder });
        const plugin = join(folder, 'bottles');
        const { devDependencies } = JSON.parse(await readFile(join(plugin, 'package.json'), 'utf8')) as {
            devDependencies: object;
        };
        expect(devDependencies).to.include({ '@portico/sdk': '^1.0.0', '@portico/testing': '^1.0.0' });
        const { NODE_TEST_CONTEXT: _inside, ...env } = process.env;
        const PATH = `${join(root, 'node_modules/.bin')}${delimiter}${env['PATH']}`;
        const { stdout } = await run('npm', ['test'], { cwd: plugin, env: { ...env, PATH } });
        expect(stdout).to.match(/pass 2/);
    });

    // The packages that the repository has already, in place of a download.
    async function linkDependencies(): Promise<void> {
        const installed = (await readdir(join(root, 'node_modules'))).filter(
            (name) => !name.startsWith('.') && name !== '@portico'
        );
        await Promise.all(
            installed.map((name) => symlink(join(root, 'node_modules', name), join(modules, name)))
        );
    }
});
