import { existsSync, readdirSync, readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { TestSocket } from '@portico/testing';

import { until } from '../../../support/until.ts';
import { createFilesRig, type FilesRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const isAlive = (pid: number): boolean =>
    existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
const open = (): readonly [number, number] => [
    readdirSync('/proc/self/fd').length,
    readdirSync('/dev/pts').length
];

/** The client's side of one terminal. */
class Window {
    readonly socket: TestSocket;
    /** With the code. */
    readonly closed: Promise<number>;
    text = '';
    last: { exitCode?: number | null; error?: { code: number } } | null = null;

    constructor(socket: TestSocket) {
        this.socket = socket;
        this.closed = this.#read();
    }

    async #read(): Promise<number> {
        for await (const message of this.socket) {
            if (typeof message === 'string') {
                this.last = JSON.parse(message) as Window['last'];
            } else {
                this.text += Buffer.from(message).toString();
            }
        }
        return (await this.socket.closed).code;
    }

    async ask(line: string, shown: RegExp): Promise<RegExpExecArray> {
        const from = this.text.length;
        this.socket.send(Buffer.from(`${line}\n`));
        await until(() => shown.test(this.text.slice(from)), String(shown));
        return shown.exec(this.text.slice(from)) as RegExpExecArray;
    }
}

describe('GET /api/plugins/filemanager/terminals/{ticket}', () => {
    let files: FilesRig;
    const isEnded = (): boolean => files.host.held().every(({ kind }) => kind !== 'process');

    const ticket = async (payload: object = {}): Promise<string> => {
        const { data, code } = await files.post('/terminals', payload);
        expect(code).to.equal(0);
        return data.path as string;
    };
    const window = async (payload?: object): Promise<Window> =>
        new Window(await files.as('admin').socket(await ticket(payload)));

    before(async () => {
        files = await createFilesRig({ roles: [], settings: { terminals: 100 } });
    });

    after(() => files.close());

    it('is a real shell: bytes both ways, its size, and its exit code', async () => {
        const shell = await window({ columns: 101, rows: 31 });
        await shell.ask('stty size', /31 101/);
        shell.socket.send(JSON.stringify({ columns: 120, rows: 40 }));
        await shell.ask('sleep 0.1; stty size', /40 120/);
        await shell.ask('printf "\\303\\251\\n"', /é/);
        shell.socket.send(Buffer.from('exit 9\n'));
        expect(await shell.closed).to.equal(1000);
        expect(shell.last).to.equal({ exitCode: 9 });
        await until(isEnded, 'the end of the shells');
    });

    it('asks for a fresh session, and takes a ticket once', async () => {
        const tired = files.host.as({ username: 'tired', permissions: ['terminal'], fresh: false });
        expect((await tired.post('/terminals', {})).code).to.equal(40301);
        const path = await ticket();
        const first = new Window(await files.as('admin').socket(path));
        await expect(files.as('admin').socket(path)).to.reject();
        await first.ask('echo here-$((1+1))', /here-2/);
        first.socket.close();
        await first.closed;
    });

    it('ends the shell and its jobs when the window closes, is torn off, or the plugin ends', async () => {
        for (const leave of [
            (shell: Window) => shell.socket.close(),
            (shell: Window) => shell.socket.terminate()
        ]) {
            const shell = await window();
            const [, pid = ''] = await shell.ask('sleep 600 & echo job $! of $$', /job (\d+) of (\d+)/);
            leave(shell);
            await until(() => !isAlive(Number(pid)), 'the end of the job');
            await until(isEnded, 'the end of the shells');
        }
        expect(
            files.host.audit
                .filter(({ resource }) => resource.endsWith('terminal'))
                .map(({ action }) => action)
        ).to.include(['start', 'stop']);
    });

    it('leaves nothing behind after forty windows', { timeout: 180_000 }, async () => {
        const [handles, lines] = open();
        for (let round = 0; round < 8; round += 1) {
            await Promise.all(
                [0, 1, 2, 3, 4].map(async (number) => {
                    const shell = await window();
                    await shell.ask(`echo here-$((${number}+40))`, new RegExp(`here-${number + 40}`));
                    if (number === 0) {
                        shell.socket.send(Buffer.from('exit 3\n'));
                        await shell.closed;
                        expect(shell.last).to.equal({ exitCode: 3 });
                        return;
                    }
                    shell.socket[number % 2 === 0 ? 'close' : 'terminate']();
                    await shell.closed;
                })
            );
        }
        await until(isEnded, 'the end of the shells');
        // The connections of the client's own pool may be a few more.
        await until(() => open()[0] <= handles + 8 && open()[1] <= lines, 'as few files as before');
    });

    it('closes every window with the plugin', async () => {
        const shells = [await window(), await window(), await window()];
        const pids = await Promise.all(
            shells.map(async (shell) => Number((await shell.ask('echo pid $$', /pid (\d+)/))[1]))
        );
        const { leaked } = await files.host.stop();
        expect(leaked).to.equal([]);
        await Promise.all(shells.map(({ closed }) => closed));
        await until(() => pids.every((pid) => !isAlive(pid)), 'the end of all shells');
    });
});
