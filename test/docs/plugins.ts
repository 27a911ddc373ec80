import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { blocksOf, readPage, root } from '../support/docs/markdown.ts';
import { pluginPages } from '../support/docs/plugin-reference.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const run = promisify(execFile);
const sources = ['--conditions=portico-source', '--disable-warning=ExperimentalWarning'];
const tsc = join(root, 'node_modules/.bin/tsc');

/** What `node --test` says, with what failed in the message. */
async function nodeTest(folder: string, ...files: readonly string[]): Promise<string> {
    const { NODE_TEST_CONTEXT: _inside, ...env } = process.env;
    try {
        return (
            await run(process.execPath, [...sources, '--test', '--test-reporter=tap', ...files], {
                cwd: folder,
                env
            })
        ).stdout;
    } catch (error) {
        throw new Error((error as { stdout: string }).stdout);
    }
}

/** Compiles what the folder's tsconfig.json includes, with our packages from their sources: what those need beyond it is added. */
async function compile(folder: string): Promise<void> {
    const { include } = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8')) as {
        include: readonly string[];
    };
    const { compilerOptions } = JSON.parse(readPage('tsconfig.base.json')) as {
        compilerOptions: { readonly lib: readonly string[] };
    };
    const file = join(folder, 'tsconfig.sources.json');
    writeFileSync(
        file,
        JSON.stringify({
            extends: './tsconfig.json',
            compilerOptions: {
                lib: compilerOptions.lib,
                customConditions: ['portico-source'],
                allowImportingTsExtensions: true
            },
            include: [...include, join(root, 'registry/src/npm/libraries.d.ts')]
        })
    );
    await run(tsc, ['-p', file], { cwd: folder }).catch((error: unknown) => {
        throw new Error((error as { stdout: string }).stdout);
    });
}

describe('docs/plugins', { timeout: 180_000 }, () => {
    let folder: string;

    before(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-authors-'));
        symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    });

    after(() => rmSync(folder, { recursive: true, force: true }));

    it('has tables of this code: after a change, run npm run api', () => {
        for (const { file, text } of pluginPages()) {
            expect(readFileSync(file, 'utf8'), file).to.equal(text);
        }
    });

    it('shows patterns that compile, and do what is said of them', async () => {
        const place = join(folder, 'patterns');
        mkdirSync(place);
        const blocks = blocksOf(readPage('docs/plugins/patterns.md')).filter(
            ({ language }) => language === 'ts'
        );
        blocks.forEach(({ name, text }) => writeFileSync(join(place, name ?? ''), text));
        writeFileSync(join(place, 'package.json'), '{ "type": "module" }');
        const { compilerOptions } = JSON.parse(readPage('docs/examples/hello/tsconfig.json')) as {
            compilerOptions: object;
        };
        writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['.'] }));
        await compile(place);
        expect(await nodeTest(place, 'patterns.test.ts'))
            .to.match(/^# fail 0$/m)
            .and.to.match(/^# pass 13$/m);
    });

    it('has an example that compiles, passes its tests and keeps to what every plugin keeps to', async () => {
        const place = join(folder, 'hello');
        cpSync(join(root, 'docs/examples/hello'), place, { recursive: true });
        await compile(place);
        expect(await nodeTest(place, 'test/hello.test.ts'))
            .to.match(/^# fail 0$/m)
            .and.to.match(/^# pass 5$/m);
        await run(tsc, ['-p', 'tsconfig.build.json', '--customConditions', 'portico-source'], { cwd: place });
        const { runConformance } = await import('@portico/testing');
        expect((await runConformance(place, { cycles: 10 })).findings).to.equal([]);
    });

    it('leads a newcomer to that example', () => {
        const blocks = blocksOf(readPage('docs/plugins/first-plugin.md'));
        const json = (name: string): unknown =>
            JSON.parse(blocks.find((block) => block.language === 'json' && block.name === name)?.text ?? '');
        const { portico } = JSON.parse(readPage('docs/examples/hello/package.json')) as { portico: unknown };
        expect(json('manifest')).to.equal(portico);
        expect(json('conformance')).to.equal(JSON.parse(readPage('docs/examples/hello/conformance.json')));
        const rows = (blocks.find(({ name }) => name === 'readme')?.text ?? '')
            .split('\n')
            .filter((line) => line.startsWith('| GET') || line.startsWith('| POST') || line.startsWith('| `'))
            .map((line) => line.split('|', 2)[1]);
        expect(rows).to.have.length(4);
        rows.forEach((row) => expect(readPage('docs/examples/hello/README.md')).to.contain(row ?? ''));
        expect(dirname(blocks.find(({ name }) => name?.endsWith('index.ts'))?.name ?? '')).to.equal(
            'docs/examples/hello/src'
        );
    });
});
