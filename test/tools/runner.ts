import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { noSmallDisk } from '../support/machine/small-disk.ts';
import { itUnless } from '../support/skip.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const itOnLinux = itUnless(existsSync('/proc/self/environ') ? undefined : 'there is no /proc', it);
const itWithMounts = itUnless(noSmallDisk, it);

interface Outcome {
    code: number | null;
    output: string;
    lines: string[];
}

async function run(
    files: string[],
    environment: Record<string, string> = {},
    options: string[] = []
): Promise<Outcome> {
    const { CI: _ci, ...inherited } = process.env;
    const args = ['tools/test.mjs', ...options, ...files.map((file) => `test/fixtures/runner/${file}.ts`)];
    const child = spawn(process.execPath, args, {
        env: { ...inherited, ...environment },
        stdio: ['ignore', 'pipe', 'inherit']
    });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const output = await text(child.stdout);
    return { code: await ended, output, lines: output.trimEnd().split('\n') };
}

describe('tools/test', () => {
    it('ends with the count and exits with 0 when every test passes', async () => {
        const { code, lines } = await run(['passes']);
        expect(lines.at(-1)).to.equal('2 passed, 0 failed');
        expect(code).to.equal(0);
    });

    it('names a failed test, shows its error, and exits with 1', async () => {
        const { code, output, lines } = await run(['fails', 'passes']);
        expect(output).to.contain('one is not two').and.to.contain('fails.ts: fails › does not add up');
        expect(lines.at(-1)).to.equal('3 passed, 1 failed');
        expect(code).to.equal(1);
    });

    it('runs a failed file again after all others, and names in the summary what passes only then', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'runner-'));
        try {
            const { code, output, lines } = await run(
                ['fails-once', 'fails', 'passes'],
                { MARK: join(folder, 'mark') },
                ['--again']
            );
            const [, second = ''] = output.split('Failed at first, passed when run again alone');
            expect(second).to.contain('fails-once.ts: once › passes when it runs again');
            expect(second).to.contain('fails.ts: fails › does not add up');
            expect(lines.at(-1)).to.equal('4 passed, 1 failed');
            expect(code).to.equal(1);
        } finally {
            rmSync(folder, { recursive: true });
        }
    });

    it('runs nothing again when many files failed, or when files are named', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'runner-'));
        try {
            const environment = { MARK: join(folder, 'mark') };
            const once = await run(['fails-once'], environment);
            expect(once.lines.at(-1)).to.equal('0 passed, 1 failed');
            rmSync(environment.MARK);
            const many = ['fails-once', 'fails', 'dies', 'fails-after', 'not-exported'];
            expect((await run(many, environment, ['--again'])).lines.at(-1)).to.equal('2 passed, 5 failed');
        } finally {
            rmSync(folder, { recursive: true });
        }
    });

    it('counts a file whose process dies, with the tests that it had passed', async () => {
        const { code, output, lines } = await run(['dies']);
        expect(output).to.contain('ended before its last test (exit code SIGKILL)');
        expect(lines.at(-1)).to.equal('1 passed, 1 failed');
        expect(code).to.equal(1);
    });

    it('ends a file that blocks its thread when its time is up', async () => {
        const hang = (minutes: string): Promise<Outcome> => run(['hangs'], { PORTICO_TEST_MINUTES: minutes });
        const short = await hang('0.05');
        // On a busy machine, three seconds may be over before the first test of the file begins.
        const [{ code, output, lines }, minutes] = short.lines.at(-1)?.startsWith('0')
            ? [await hang('0.2'), '0.2']
            : [short, '0.05'];
        expect(output).to.contain(`did not end within ${minutes} minutes`);
        expect(lines.at(-1)).to.equal('1 passed, 1 failed');
        expect(code).to.equal(1);
    });

    it('fails a test whose clean-up fails, and counts it once', async () => {
        const { code, output, lines } = await run(['fails-after']);
        expect(output).to.contain('clean-up broke');
        expect(lines.at(-1)).to.equal('0 passed, 1 failed');
        expect(code).to.equal(1);
    });

    it('fails a file that forgets to export lab', async () => {
        const { code, output, lines } = await run(['not-exported']);
        expect(output).to.contain('not exported via exports.lab');
        expect(lines.at(-1)).to.equal('0 passed, 1 failed');
        expect(code).to.equal(1);
    });

    it('fails a file that leaves a name on the global object or a file in the temporary folder', async () => {
        const { code, output, lines } = await run(['leaves/global', 'leaves/file']);
        expect(output).to.contain('leaves these on the global object: forgotten');
        expect(output).to.contain('leaves files in the temporary folder: forgotten');
        expect(lines.at(-1)).to.equal('2 passed, 2 failed');
        expect(code).to.equal(1);
    });

    itWithMounts(
        'fails a file whose temporary folder cannot be removed, and goes on with the next one',
        async () => {
            const { code, output, lines } = await run(['leaves/mount', 'passes']);
            const [, folder = ''] = /cannot be removed: .*'(\/[^']+)'/.exec(output) ?? [];
            execFileSync('umount', [folder]);
            rmSync(dirname(folder), { recursive: true });
            expect(lines.at(-1)).to.equal('3 passed, 1 failed');
            expect(code).to.equal(1);
        }
    );

    itOnLinux('names the processes that a file leaves behind and ends them', async () => {
        const { code, output, lines } = await run(['leaves/processes']);
        const pids = [...output.matchAll(/leaves a process behind: sleep 6[01] \((\d+)\)\n/g)].map((match) =>
            Number(match[1])
        );
        expect(new Set(pids).size).to.equal(2);
        expect(lines.at(-1)).to.equal('2 passed, 2 failed');
        expect(code).to.equal(1);
        expect(pids.filter((pid) => existsSync(`/proc/${pid}/cwd`))).to.equal([]);
    });

    it('lists a skipped test with its reason, and fails it where CI is set', async () => {
        const here = await run(['skips']);
        expect(here.output).to.contain('needs a moon (skipped: there is no moon)');
        expect(here.lines.at(-1)).to.equal('1 passed, 0 failed, 1 skipped');
        expect(here.code).to.equal(0);

        const there = await run(['skips'], { CI: 'true' });
        expect(there.lines.at(-1)).to.equal('1 passed, 1 failed');
        expect(there.code).to.equal(1);
    });

    it('fails a test that is skipped without a reason', async () => {
        const { code, output, lines } = await run(['skips-silently']);
        expect(output).to.contain('is forgotten (skipped without a reason)');
        expect(lines.at(-1)).to.equal('0 passed, 1 failed');
        expect(code).to.equal(1);
    });
});
