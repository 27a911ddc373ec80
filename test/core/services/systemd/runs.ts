import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { ServiceExit } from '../../../../core/src/services/port.ts';
import { noRuns, readRuns, writeAsked, writeRuns } from '../../../../core/src/services/systemd/runs.ts';
import { after } from '../../../../core/src/services/systemd/scripts.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let folder: string;

/** What the script writes down when systemd says this of the end (systemd.exec(5), `$SERVICE_RESULT`). */
function end(result: string, code: string, status: string): Partial<ServiceExit> {
    writeRuns(folder, { ...noRuns, open: true, command: 'abc', startedAt: 1 });
    writeAsked(folder, false);
    execFileSync('/bin/sh', ['-c', after, 'sh', folder, 'always'], {
        env: {
            PATH: process.env['PATH'],
            SERVICE_RESULT: result,
            EXIT_CODE: code,
            EXIT_STATUS: status
        },
        stdio: 'ignore'
    });
    const { exits, failures, open, lastExit } = readRuns(folder) ?? noRuns;
    expect([exits, failures, open]).to.equal([1, 1, false]);
    const { at, ...exit } = lastExit as ServiceExit;
    expect(Math.abs(at - Date.now())).to.be.below(60_000);
    return exit;
}

describe('the runs of a unit', () => {
    beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-runs-'));
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    it('say that a program used up its memory, and nothing of memory where it did not', () => {
        const memory = { code: null, signal: 'SIGKILL', limit: 'memory' } as const;
        expect(end('oom-kill', 'killed', 'KILL')).to.equal(memory);
        // With OOMPolicy=stop the kernel kills a descendant, and systemd ends the program by itself.
        expect(end('oom-kill', 'exited', '143')).to.equal({ code: 143, signal: null, limit: 'memory' });
        expect(end('signal', 'killed', 'KILL')).to.equal({ code: null, signal: 'SIGKILL' });
        expect(end('exit-code', 'exited', '3')).to.equal({ code: 3, signal: null });
    });

    it('keep it when the panel writes them anew', () => {
        end('oom-kill', 'killed', 'KILL');
        const runs = readRuns(folder) ?? noRuns;
        writeRuns(folder, { ...runs, exits: 2 });
        expect(readRuns(folder)).to.equal({ ...runs, exits: 2 });
    });
});
