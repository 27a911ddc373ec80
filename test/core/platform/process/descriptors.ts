import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it } = lab;

const source = fileURLToPath(
    new URL('../../../../core/src/platform/process/descriptors.ts', import.meta.url)
);
/** Above the numbers that Node itself looks after. */
const high = 60;

/** The descriptors that a child of a process has which was itself given a high one, and whether that process still has it. */
async function descriptorsOfChild(
    first: string
): Promise<{ readonly child: number[]; readonly own: boolean }> {
    const script = `
        import { spawn } from 'node:child_process';
        import { existsSync, readdirSync } from 'node:fs';
        ${first}
        const own = existsSync('/proc/self/fd/${high}');
        const child = spawn('sh', ['-c', 'echo loaded; read -r line'], { stdio: ['pipe', 'pipe', 'ignore'] });
        // Until then it may have a library open that it loads.
        child.stdout.once('data', () => {
            const names = readdirSync('/proc/' + child.pid + '/fd').map(Number);
            process.stdout.write(JSON.stringify({ child: names, own }));
            child.kill('SIGKILL');
        });`;
    const given = openSync('/dev/null', 'r');
    try {
        const stdio = [
            'ignore',
            'pipe',
            'inherit',
            ...Array<'ignore'>(high - 3).fill('ignore'),
            given
        ] as const;
        const started = spawn(process.execPath, ['--input-type=module', '--eval', script], {
            stdio: [...stdio]
        });
        return JSON.parse(await text(started.stdout as NodeJS.ReadableStream)) as Awaited<
            ReturnType<typeof descriptorsOfChild>
        >;
    } finally {
        closeSync(given);
    }
}

describe('closeInherited', { timeout: 20_000 }, () => {
    it('keeps from children what the process was started with, which Node by itself hands on', async () => {
        expect((await descriptorsOfChild('')).child).to.include(high);
        const closing = `import { closeInherited } from ${JSON.stringify(source)}; closeInherited();`;
        expect(await descriptorsOfChild(closing)).to.equal({ child: [0, 1, 2], own: false });
    });
});
