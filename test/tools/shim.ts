import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const shimPath = resolve(import.meta.dirname, '../../core/bin/portico.js');
const run = promisify(execFile);

// A double of the command line: prints how it was started and, when asked to, waits until it is stopped.
const command = `const said: object = { args: process.argv.slice(2), flags: process.execArgv };
if (process.argv[2] === 'wait') {
    process.on('SIGTERM', () => process.exit(7));
    setInterval(() => {}, 1000);
} else {
    process.exitCode = 3;
}
console.log(JSON.stringify(said));
`;

describe('bin/portico', () => {
    let folder: string;
    let shim: string;

    beforeEach(async () => {
        folder = await mkdtemp(join(tmpdir(), 'shim-'));
        shim = join(folder, 'core/bin/portico.js');
        await mkdir(join(folder, 'core/bin'), { recursive: true });
        await cp(shimPath, shim);
        await writeFile(join(folder, 'core/package.json'), '{ "type": "module" }');
    });

    afterEach(() => rm(folder, { recursive: true, force: true }));

    async function put(path: string, source: string): Promise<void> {
        await mkdir(join(folder, 'core', path, '..'), { recursive: true });
        await writeFile(join(folder, 'core', path), source);
    }

    it('runs the sources with the private condition, and hands on arguments and exit code', async () => {
        await put('src/cli/portico.ts', command);
        const failure = await run(process.execPath, [shim, 'token', 'a b']).catch(
            (error: { code: number; stdout: string; stderr: string }) => error
        );
        expect(failure).to.include({ code: 3, stderr: '' });
        expect(JSON.parse(failure.stdout)).to.equal({
            args: ['token', 'a b'],
            flags: ['--conditions=portico-source', '--disable-warning=ExperimentalWarning']
        });
    });

    it('hands on a signal', async () => {
        await put('src/cli/portico.ts', command);
        const child = spawn(process.execPath, [shim, 'wait'], { stdio: ['ignore', 'pipe', 'inherit'] });
        await once(child.stdout, 'data');
        child.kill('SIGTERM');
        expect(await once(child, 'exit')).to.equal([7, null]);
    });

    it('runs what was built where there are no sources', async () => {
        await put(
            'dist/cli/portico.js',
            'console.log(process.argv.slice(2).join(), process.execArgv.length);'
        );
        const { stdout } = await run(process.execPath, [shim, 'doctor']);
        expect(stdout).to.equal('doctor 0\n');
    });

    it("looks for the repository's Node on one that is too old, and says what to do without it", async () => {
        await put('src/cli/portico.ts', command);
        const old = join(folder, 'old.mjs');
        await writeFile(
            old,
            `Object.defineProperty(process.versions, 'node', { value: '20.0.0' });\nprocess.execve = undefined;\n`
        );

        const refused = await run(process.execPath, ['--import', old, shim]).catch(
            (error: { code: number; stderr: string }) => error
        );
        expect(refused).to.include({ code: 1 });
        expect(refused.stderr).to.match(
            /^portico needs Node 24 or newer, this is v[\d.]+; run `npm start` or `npm run setup` first\n$/
        );

        await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
        await symlink(process.execPath, join(folder, 'node_modules/.bin/node'));
        const found = await run(process.execPath, ['--import', old, shim, 'x']).catch(
            (error: { code: number; stdout: string }) => error
        );
        expect(found).to.include({ code: 3 });
        expect(JSON.parse(found.stdout)).to.include({ args: ['x'] });
    });
});
