import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { TestSocket } from '@portico/testing';

import { settings } from '../../../../extensions/filemanager/src/settings.ts';
import type { Child, SpawnOptions } from '../../../../sdk/src/index.ts';
import { until } from '../../../support/until.ts';
import { base, createFilesRig, type FilesRig, type FilesRigOptions } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, afterEach } = lab;

type Spawn = (args: readonly string[], options: SpawnOptions) => Promise<Child>;

/** Stands for a terminal: this machine may have none. */
function terminalOf(shell: Spawn): Pick<FilesRigOptions, 'boundary'> {
    return {
        boundary: () => ({
            runtime: ({ hostApi, local }, inThread) =>
                inThread({
                    hostApi,
                    local: { ...local, spawn: (_file, args, options = {}) => shell(args, options) }
                }),
            close: async () => undefined
        })
    };
}

/** A shell that says back what it is told, until it hears `exit`. Every call is noted. */
function echoShell(notes: string[]): Spawn {
    return async (args, { pty, user, env }) => {
        notes.push(
            `start ${args.join(' ')} ${pty?.columns}x${pty?.rows} ${user ?? ''} ${env?.['TERM'] ?? ''}`
        );
        const { readable, writable } = new TransformStream<
            Uint8Array<ArrayBuffer>,
            Uint8Array<ArrayBuffer>
        >();
        const exit = Promise.withResolvers<{
            code: number | null;
            signal: string | null;
            timedOut: boolean;
        }>();
        const writer = writable.getWriter();
        const end = (code: number | null): void => {
            exit.resolve({ code, signal: null, timedOut: false });
            void writer.close().catch(() => undefined);
        };
        if (args[0] === '-c') {
            end(0);
        }
        return {
            pid: 1,
            stdout: readable,
            stderr: ReadableStream.from([]),
            exited: exit.promise,
            stdin: new WritableStream({
                async write(chunk) {
                    if (Buffer.from(chunk).toString() === 'exit') {
                        end(7);
                        return;
                    }
                    await writer.write(chunk as Uint8Array<ArrayBuffer>);
                }
            }),
            kill: async (signal = 'SIGTERM') => {
                notes.push(`kill ${signal}`);
                end(null);
            },
            usage: async () => null,
            resize: async (columns, rows) => void notes.push(`resize ${columns}x${rows}`),
            async [Symbol.asyncDispose]() {
                notes.push('disposed');
                end(null);
            }
        };
    };
}

describe('POST /api/plugins/filemanager/terminals', () => {
    let files: FilesRig;
    const open = async (size: object = {}): Promise<TestSocket> => {
        const { data } = await files.post('/terminals', size);
        return files.as('admin').socket(data.path as string);
    };
    const textOf = async (socket: TestSocket): Promise<string> =>
        Buffer.from(await socket.receive()).toString();

    afterEach(async () => files.close());

    it('says which tool is missing before it gives a ticket', async () => {
        files = await createFilesRig({
            settings: { terminalShell: 'no-such-shell-here' },
            ...terminalOf(async () =>
                Promise.reject(
                    Object.assign(new Error('not installed'), {
                        '~portico': 'failure',
                        code: 50302,
                        reason: 'TOOL_MISSING',
                        data: { tool: 'pty', install: 'npm install' }
                    })
                )
            )
        });
        const { code, reason, data } = await files.post('/terminals', {});
        expect([code, reason]).to.equal([50302, 'TOOL_MISSING']);
        expect(data.install).to.equal('npm install');
        const health = (await files.host.health()).find(({ name }) => name === 'terminal');
        expect(health?.state).to.equal('degraded');
        expect(health?.remedy?.command).to.equal('npm install');
    });

    it('carries bytes and sizes both ways, and ends the shell with the socket', async () => {
        const notes: string[] = [];
        files = await createFilesRig({
            settings: { terminalUser: 'www-data' },
            ...terminalOf(echoShell(notes))
        });
        const { data } = await files.post('/terminals', { columns: 100, rows: 30 });
        expect(data.path).to.equal(`${base}/terminals/${data.ticket}`);
        const first = await files.as('admin').socket(data.path);
        first.send(Buffer.from('hello'));
        first.send('{"columns":120,"rows":40}');
        expect(await textOf(first)).to.equal('hello');
        await until(() => notes.includes('resize 120x40'), 'the new size');
        first.close();
        await until(() => notes.length === 6, 'the end of the shell');
        expect(notes).to.equal([
            'start -c exit 0 80x24 www-data xterm-256color',
            'disposed',
            'start -l 100x30 www-data xterm-256color',
            'resize 120x40',
            'kill SIGHUP',
            'disposed'
        ]);
        const audited = (): number =>
            files.host.audit.filter(
                ({ action, resource, outcome }) =>
                    outcome === 'success' &&
                    resource.endsWith('terminal') &&
                    (action === 'stop' || action === 'start')
            ).length;
        // One of the ticket, two of the socket.
        await until(() => audited() === 3, 'the entries of the socket');
        const again = await open();
        again.send(Buffer.from('exit'));
        expect(await textOf(again)).to.equal('{"exitCode":7}');
        expect((await again.closed).code).to.equal(1000);
    });

    it('refuses what is no size, and more terminals than are allowed', async () => {
        files = await createFilesRig({ settings: { terminals: 1 }, ...terminalOf(echoShell([])) });
        const wrong = await open();
        wrong.send('{"columns":0,"rows":"x"}');
        expect(JSON.parse(await textOf(wrong)).error.code).to.equal(40001);
        // The panel hears the answer to its closing, and does not cut the connection after its 5 s.
        let ending = true;
        void wrong.closed.then(() => (ending = false));
        for (let turns = 0; ending; turns += 1) {
            expect(turns).to.be.below(400);
            await wait(10);
        }
        expect((await wrong.closed).code).to.equal(1011);
        const first = await open();
        // What the shell says back shows that it runs.
        first.send(Buffer.from('here'));
        expect(await textOf(first)).to.equal('here');
        expect((await files.post('/terminals', {})).reason).to.equal('TOO_MANY_TERMINALS');
        first.send('{"columns":1,"rows":1}');
        first.close();
        await until(async () => (await files.post('/terminals', {})).status === 200, 'the end of the shell');
        expect((await files.post('/terminals', { columns: 0 })).code).to.equal(40001);
    });
});

describe('@portico/plugin-filemanager', () => {
    let files: FilesRig;

    afterEach(async () => files.close());

    // A hundred times, under traffic, in a panel: test/extensions/hundred.
    it('leaves nothing behind after twenty starts and ends', { timeout: 120_000 }, async () => {
        files = await createFilesRig();
        const open = (): number =>
            process
                .getActiveResourcesInfo()
                .filter((kind) => kind !== 'Immediate' && kind !== 'TTYWrap' && kind !== 'PipeWrap').length;
        await files.put('kept', 'kept');
        await files.host.stop();
        const before = open();
        for (let round = 0; round < 20; round += 1) {
            await files.host.start();
            expect((await files.read('kept')).data).to.equal('kept');
            await files.put('kept', 'kept');
            const { leaked } = await files.host.stop();
            expect(leaked).to.equal([]);
        }
        // The client's connections end a little later.
        await until(() => open() <= before, 'as few resources as before');
        await files.host.start();
    });

    it('shows in its README the routes that it has', async () => {
        files = await createFilesRig();
        const readme = readFileSync(
            new URL('../../../../extensions/filemanager/README.md', import.meta.url),
            'utf8'
        );
        const shown = [
            ...readme.matchAll(
                /^\| ((?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|WebSocket)[A-Z, ]*) `([^`]+)` \| ([a-z]+) \|/gm
            )
        ].map(([, methods, path, access]) => `${methods?.trim()} ${path?.replace(/\?.*/, '')} ${access}`);
        const mounted = files.host.document.routes.map(
            ({ kind, methods, path, access }) =>
                `${kind === 'socket' ? 'WebSocket' : methods.join(', ')} ${path} ${typeof access === 'string' ? access : 'permission' in access ? access.permission : 'public'}`
        );
        expect(shown.sort()).to.equal(mounted.sort());
        expect([...readme.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name).sort()).to.equal(
            Object.keys(settings.describe()['keys']).sort()
        );
    });
});
