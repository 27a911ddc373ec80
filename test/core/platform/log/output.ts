/** The log of a real panel process whose standard output takes no more. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { mountSmallDisk, noSmallDisk } from '../../../support/machine/small-disk.ts';
import { itUnless } from '../../../support/skip.ts';

export const lab = Lab.script();
const { describe, it } = lab;

/** A process that logs a line of `bytes` for each message, and answers how many lines it has lost. */
const source = `
import { createLog } from ${JSON.stringify(new URL('../../../../core/src/platform/log/log.ts', import.meta.url).href)};
const log = createLog({ level: 'info' });
process.on('message', (bytes) => {
    log.info('x'.repeat(bytes));
    setImmediate(() => process.send(log.lostLines()));
});
process.on('disconnect', () => process.exit(0));
process.send('ready');`;

const start = (stdout: 'pipe' | number) =>
    spawn(process.execPath, ['--conditions=portico-source', '--input-type=module', '--eval', source], {
        stdio: ['ignore', stdout, 'inherit', 'ipc']
    });
type Child = ReturnType<typeof start>;

const say = async (child: Child, bytes: number): Promise<number> => {
    const answered = once(child, 'message');
    child.send(bytes);
    return ((await answered) as [number])[0];
};
const end = async (child: Child): Promise<unknown> => {
    const exited = once(child, 'exit');
    child.disconnect();
    return (await exited)[0];
};

describe('LogOutput', () => {
    it('goes on when the reader of the pipe is gone, and counts the lines', { timeout: 20_000 }, async () => {
        const child = start('pipe');
        await once(child, 'message');
        expect(await say(child, 10)).to.equal(0);
        child.stdout?.destroy();
        let lost = 0;
        for (let n = 0; n < 5; n += 1) {
            lost = await say(child, 10);
        }
        expect(lost).to.be.between(3, 6);
        expect(await end(child)).to.equal(0);
    });

    itUnless(noSmallDisk, it)(
        'goes on when the disk is full, and says then how many lines were lost',
        async () => {
            const root = mkdtempSync(join(tmpdir(), 'portico-log-'));
            const disk = mountSmallDisk(join(root, 'disk'), 1_048_576);
            const path = join(disk.folder, 'panel.log');
            const file = openSync(path, 'a');
            const child = start(file);
            try {
                closeSync(file);
                await once(child, 'message');
                expect(await say(child, 100)).to.equal(0);
                disk.fill();
                // The page that the file has already takes a part of it.
                expect(await say(child, 10_000)).to.equal(1);
                expect(await say(child, 10_000)).to.equal(2);
                disk.free();
                expect(await say(child, 100)).to.equal(2);
                expect(await end(child)).to.equal(0);
                const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
                expect(lines).to.have.length(4);
                expect(JSON.parse(lines[2] as string).msg).to.have.length(100);
                expect(JSON.parse(lines[3] as string)).to.include({ level: 'warn', lost: 2 });
            } finally {
                child.kill('SIGKILL');
                disk.close();
                rmSync(root, { recursive: true, force: true });
            }
        }
    );
});
