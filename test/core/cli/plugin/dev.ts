import { type ChildProcess, spawn } from 'node:child_process';
import {
    cpSync,
    existsSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { root as repository } from '../../../support/docs/markdown.ts';
import { environmentOf, shim } from '../../../support/panel/console.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;

describe('portico plugin dev', { timeout: 180_000 }, () => {
    let root: string;
    let file: string;
    let source: string;
    let child: ChildProcess;
    let said = '';
    let url: string;
    let token: string;

    const heard = (pattern: RegExp, from: number): Promise<unknown> =>
        until(() => pattern.test(said.slice(from)), `${pattern} in:\n${said}`, limitMs);
    const save = async (text: string, pattern: RegExp): Promise<void> => {
        const from = said.length;
        writeFileSync(file, text);
        await heard(pattern, from);
    };
    const ask = async (method: string, path: string, body?: object): Promise<unknown> => {
        const answer = await fetch(`${url}${path}`, {
            method,
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            ...(body === undefined ? {} : { body: JSON.stringify(body) })
        });
        return ((await answer.json()) as { data: unknown }).data;
    };
    const greet = async (name: string): Promise<unknown> =>
        ((await ask('POST', '/greetings', { name })) as { text: string }).text;

    before({ timeout: limitMs }, async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-dev-test-'));
        cpSync(join(repository, 'docs/examples/hello'), join(root, 'hello'), { recursive: true });
        symlinkSync(join(repository, 'node_modules'), join(root, 'hello/node_modules'));
        file = join(root, 'hello/src/index.ts');
        source = readFileSync(file, 'utf8');
        child = spawn(process.execPath, [shim, 'plugin', 'dev', join(root, 'hello')], {
            cwd: root,
            env: { ...environmentOf(), TMPDIR: root }
        });
        [child.stdout, child.stderr].forEach((stream) =>
            stream?.on('data', (chunk: Buffer) => {
                said += chunk.toString();
            })
        );
        await heard(/Ctrl\+C/, 0);
        url = /^URL=(\S+)$/m.exec(said)?.[1] ?? '';
        token = /^TOKEN=(\S+)$/m.exec(said)?.[1] ?? '';
    });

    after(() => {
        child.kill('SIGKILL');
        rmSync(root, { recursive: true, force: true });
    });

    it('runs the plugin from its sources, in a panel of its own', async () => {
        expect(said).to.match(
            /^hello 1\.0\.0 is running: POST \/greetings, GET \/greetings, GET \/greetings\/\{id\}$/m
        );
        expect(await greet('Ann')).to.equal('Hello, Ann');
    });

    it('reloads what is saved, on the data that are there', async () => {
        await save(source.replace("'Hello'", "'Moin'"), /is running/);
        expect(await greet('Ben')).to.equal('Moin, Ben');
        expect((await ask('GET', '/greetings')) as unknown[]).to.have.length(2);
    });

    it('keeps what runs when a save does not load, or does not set up', async () => {
        await save(
            '\nthis is no module',
            /Not reloaded; the version before goes on running: IMPORT_FAILED.*\n {4}at \S+\/hello\/src\/index\.ts:2$/m
        );
        expect(await greet('Cid')).to.equal('Moin, Cid');
        await save(
            source.replace('setup(ctx) {', "setup(ctx) { throw new Error('not yet');"),
            /Not reloaded; the version before goes on running: SETUP_FAILED: not yet\n {4}at \S+\/hello\/src\/index\.ts:\d+$/m
        );
        expect(await greet('Dan')).to.equal('Moin, Dan');
    });

    it('shows the line of a handler that throws', async () => {
        await save(
            source
                .replace("'Hello'", "'Moin'")
                .replace(
                    'setup(ctx) {',
                    "setup(ctx) {\n        ctx.route({ method: 'GET', path: '/boom', access: 'read', summary: 'Fails', handler: () => { throw new Error('boom'); } });"
                ),
            /is running/
        );
        const from = said.length;
        await ask('GET', '/boom');
        await heard(/^error: .*\nError: boom\n\s+at .*\/hello\/src\/index\.ts:\d+/m, from);
    });

    it('starts what ran before again, code and data, when a save does not start', async () => {
        const broken = source
            .replace(
                /text text not null\)'\s*\]\s*\}/,
                "$&, { name: '0002', up: ['drop table hello_greetings'] }"
            )
            .replace(
                'setup(ctx) {',
                "setup(ctx) {\n        ctx.onStart(() => { throw new Error('no engine'); });"
            );
        expect(broken).to.contain('drop table');
        await save(
            broken,
            /Not reloaded; the version before is started again: START_FAILED.*\n {4}at \S+\/hello\/src\/index\.ts:\d+$[\s\S]*is running/m
        );
        expect((await ask('GET', '/greetings')) as unknown[]).to.have.length(4);
        expect(await greet('Eve')).to.equal('Moin, Eve');
        await save(source, /is running/);
        expect(await greet('Flo')).to.equal('Hello, Flo');
    });

    it('leaves nothing behind when it is ended', async () => {
        const ended = new Promise((resolve) => child.once('exit', (code) => resolve(code)));
        child.kill('SIGINT');
        expect(await ended).to.equal(0);
        expect(readdirSync(root).filter((name) => name !== 'hello')).to.equal([]);
        expect(existsSync(file)).to.equal(true);
    });
});
