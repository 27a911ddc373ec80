import { execFileSync } from 'node:child_process';
import {
    appendFileSync,
    linkSync,
    mkdtempSync,
    renameSync,
    rmSync,
    symlinkSync,
    truncateSync,
    utimesSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readLog } from '../../../../core/src/platform/log/file.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('readLog', { timeout: 20_000 }, () => {
    let folder: string;
    let path: string;
    let output: string;
    const uids = [process.getuid?.() ?? 0];

    beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), 'portico-log-'));
        path = join(folder, 'engine.log');
        output = join(folder, 'output.log');
    });

    afterEach(() => rmSync(folder, { recursive: true }));

    const last = async (lines: number, paths = [output, path]): Promise<string[]> => {
        const read: string[] = [];
        for await (const line of readLog(
            { paths, uids },
            { lines, follow: false, signal: new AbortController().signal }
        )) {
            read.push(line);
        }

        return read;
    };

    const numbered = (from: number, to: number): string =>
        Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('');

    it('gives the last lines, newest last, without the line that is being written', async () => {
        writeFileSync(path, `${numbered(0, 50_000)}half`);
        expect(await last(3)).to.equal(['line 49997', 'line 49998', 'line 49999']);
        expect(await last(0)).to.equal([]);
        expect(await last(-5)).to.equal([]);
        const many = await last(1e9);
        expect(many).to.have.length(10_000);
        expect(many[0]).to.equal('line 40000');
    });

    it('gives nothing when there is no log', async () => {
        expect(await last(10)).to.equal([]);
    });

    it('goes on in the file that the log was rolled to last', async () => {
        writeFileSync(join(folder, 'engine-2026-01-01T00-00-00.000.log'), numbered(0, 3));
        writeFileSync(join(folder, 'engine-2026-01-02T00-00-00.000.log'), numbered(3, 6));
        writeFileSync(path, numbered(6, 8));
        expect(await last(4)).to.equal(['line 4', 'line 5', 'line 6', 'line 7']);
    });

    it('puts what was written last at the end, whichever file it is in', async () => {
        writeFileSync(path, 'log\n');
        writeFileSync(output, 'panic\n');
        utimesSync(path, 1, 1);
        expect(await last(10)).to.equal(['log', 'panic']);
        utimesSync(output, 0, 0);
        expect(await last(10)).to.equal(['panic', 'log']);
    });

    it('cuts a long line, wherever it begins', async () => {
        const long = 'ä'.repeat(200_000);
        writeFileSync(path, `before\n${long}\nafter\n`);
        const lines = await last(3);
        expect(lines.map((line) => line.length)).to.equal([6, 16 * 1024 + 1, 5]);
        expect(lines[1]?.endsWith('…')).to.be.true();
    });

    it('reads no link, no pipe, no file of another user and none with a second name', async () => {
        writeFileSync(join(folder, 'secret'), 'secret\n');
        symlinkSync(join(folder, 'secret'), path);
        expect(await last(10)).to.equal([]);
        rmSync(path);
        linkSync(join(folder, 'secret'), path);
        expect(await last(10)).to.equal([]);
        rmSync(path);
        execFileSync('mkfifo', [path]);
        expect(await last(10)).to.equal([]);
        rmSync(path);
        writeFileSync(path, 'x\n');
        uids[0] = 4_000_000;
        expect(await last(10)).to.equal([]);
        uids[0] = process.getuid?.() ?? 0;
        expect(await last(10)).to.equal(['x']);
    });

    it('follows through rotation, truncation and a log that comes later, without losing or doubling a line', async () => {
        const ending = new AbortController();
        const seen: string[] = [];
        const reading = (async () => {
            for await (const line of readLog(
                { paths: [output, path], uids },
                { lines: 5, follow: true, signal: ending.signal, pollMs: 5 }
            )) {
                seen.push(line);
            }
        })();

        writeFileSync(path, 'one\nhal');
        await until(() => seen.length === 1, 'first');
        appendFileSync(path, 'f\n');
        await until(() => seen.length === 2, 'second');
        appendFileSync(path, 'last of the old\n');
        renameSync(path, join(folder, 'engine-2026-01-01T00-00-00.000.log'));
        writeFileSync(path, 'first of the new\n');
        await until(() => seen.length === 4, 'across rotation');
        truncateSync(path);
        appendFileSync(path, 'cut\n');
        await until(() => seen.length === 5, 'after truncation');
        writeFileSync(output, 'panic\n');
        await until(() => seen.length === 6, 'other file');
        ending.abort();
        await reading;
        expect(seen).to.equal(['one', 'half', 'last of the old', 'first of the new', 'cut', 'panic']);
    });

    it('loses no line that is written right before a rotation', async () => {
        const ending = new AbortController();
        const seen: string[] = [];
        writeFileSync(path, 'begun\n');
        const reading = (async () => {
            for await (const line of readLog(
                { paths: [path], uids },
                { lines: 5, follow: true, signal: ending.signal, pollMs: 0 }
            )) {
                seen.push(line);
            }
        })();
        await until(() => seen.length === 1, 'first');
        for (let round = 0; round < 100; round += 1) {
            for (let turns = round % 7; turns > 0; turns -= 1) {
                await turn(); // at another step of the reader each time
            }
            appendFileSync(path, `old ${round}\n`);
            renameSync(path, join(folder, `engine-${round}.log`));
            writeFileSync(path, `new ${round}\n`);
            await until(() => seen.includes(`new ${round}`), `round ${round}`);
        }
        ending.abort();
        await reading;
        expect(seen).to.equal([
            'begun',
            ...Array.from({ length: 100 }, (_, round) => [`old ${round}`, `new ${round}`]).flat()
        ]);
    });

    it('lets a reader end in the middle', async () => {
        writeFileSync(path, numbered(0, 100));
        for await (const line of readLog(
            { paths: [path], uids },
            { lines: 100, follow: true, signal: new AbortController().signal }
        )) {
            if (line === 'line 5') {
                break;
            }
        }
    });
});
