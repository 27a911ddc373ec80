import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { WebSocket } from 'ws';

import type { Generation } from '../../../../core/src/plugins/runtime/generation.ts';
import definition from '../../../../extensions/filemanager/src/index.ts';
import { createPluginRig, entriesOf, type PluginRig } from '../../../support/plugin-host.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const base = '/api/plugins/filemanager';
const { portico: manifest } = JSON.parse(
    readFileSync(new URL('../../../../extensions/filemanager/package.json', import.meta.url), 'utf8')
) as { portico: { capabilities: object } };

async function until(what: () => boolean): Promise<void> {
    for (let tries = 0; tries < 1000; tries += 1) {
        if (what()) {
            return;
        }
        await wait(10);
    }
    throw new Error('It did not happen within 10 s');
}

const isAlive = (pid: number): boolean =>
    existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
const open = (): readonly [number, number] => [
    readdirSync('/proc/self/fd').length,
    readdirSync('/dev/pts').length
];

/** The client's side of one terminal. */
class Window {
    readonly socket: WebSocket;
    /** With the code; a socket that was refused closes too. */
    readonly closed: Promise<number>;
    text = '';
    last: { exitCode?: number | null; error?: { code: number } } | null = null;

    constructor(url: string) {
        this.socket = new WebSocket(url);
        this.closed = new Promise((resolve) => this.socket.once('close', resolve));
        this.socket.on('error', () => undefined);
        this.socket.on('message', (data: Buffer, isBinary: boolean) => {
            if (isBinary) {
                this.text += data.toString();
            } else {
                this.last = JSON.parse(data.toString()) as Window['last'];
            }
        });
    }

    async ask(line: string, shown: RegExp): Promise<RegExpExecArray> {
        const from = this.text.length;
        this.socket.send(Buffer.from(`${line}\n`));
        await until(() => shown.test(this.text.slice(from)));
        return shown.exec(this.text.slice(from)) as RegExpExecArray;
    }
}

describe('GET /api/plugins/filemanager/terminals/{ticket}', () => {
    let rig: PluginRig;
    let generation: Generation;

    const ticket = async (payload: object = {}): Promise<string> => {
        const { data, code } = await rig.ask('root', 'POST', `${base}/terminals`, payload);
        expect(code).to.equal(0);
        return `${rig.url.replace('http', 'ws')}${data.path}`;
    };
    const window = async (payload?: object): Promise<Window> => {
        const opened = new Window(await ticket(payload));
        await once(opened.socket, 'open');
        return opened;
    };

    before(async () => {
        rig = await createPluginRig();
        const folder = join(rig.root, 'files');
        mkdirSync(folder);
        rig.user('root', ['filemanager:terminal'], { role: 'admin', fresh: true });
        rig.user('tired', ['filemanager:terminal'], { role: 'admin', fresh: false });
        generation = await rig.run(definition, {
            name: 'filemanager',
            capabilities: manifest.capabilities,
            manifest: manifest as never,
            settings: { roots: [{ name: 'main', path: folder, roles: [] }], terminals: 100 }
        });
    });

    after(() => rig.close());

    it('is a real shell: bytes both ways, its size, and its exit code', async () => {
        const shell = await window({ columns: 101, rows: 31 });
        await shell.ask('stty size', /31 101/);
        shell.socket.send(JSON.stringify({ columns: 120, rows: 40 }));
        await shell.ask('sleep 0.1; stty size', /40 120/);
        await shell.ask('printf "\\303\\251\\n"', /é/);
        shell.socket.send(Buffer.from('exit 9\n'));
        expect(await shell.closed).to.equal(1000);
        expect(shell.last).to.equal({ exitCode: 9 });
        await until(() => generation.held().every(({ kind }) => kind !== 'process'));
    });

    it('asks for a fresh session, and takes a ticket once', async () => {
        expect((await rig.ask('tired', 'POST', `${base}/terminals`, {})).code).to.equal(40301);
        const url = await ticket();
        const first = new Window(url);
        await once(first.socket, 'open');
        const second = new Window(url);
        await second.closed;
        expect(second.text).to.equal('');
        expect(first.socket.readyState).to.equal(WebSocket.OPEN);
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
            await until(() => !isAlive(Number(pid)));
            await until(() => generation.held().every(({ kind }) => kind !== 'process'));
        }
        expect(
            entriesOf(rig)
                .filter(({ resource }) => resource.endsWith('terminal'))
                .map(({ action }) => action)
        ).to.include(['start', 'stop']);
    });

    it('leaves nothing behind after a hundred windows', { timeout: 180_000 }, async () => {
        const [files, lines] = open();
        for (let round = 0; round < 20; round += 1) {
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
        await until(() => generation.held().every(({ kind }) => kind !== 'process'));
        // The connections of the client's own pool may be a few more.
        await until(() => open()[0] <= files + 8 && open()[1] <= lines);
    });

    it('closes every window with the plugin', async () => {
        const shells = [await window(), await window(), await window()];
        const pids = await Promise.all(
            shells.map(async (shell) => Number((await shell.ask('echo pid $$', /pid (\d+)/))[1]))
        );
        const { leaked } = await generation.close('the test ends it');
        expect(leaked).to.equal([]);
        await Promise.all(shells.map(({ closed }) => closed));
        await until(() => pids.every((pid) => !isAlive(pid)));
    });
});
