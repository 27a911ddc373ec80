import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Child, SpawnOptions } from '../../../../sdk/src/index.ts';
import { Harness } from '../harness.ts';

export const lab = Lab.script();
const { describe, it, afterEach } = lab;

/** A shell that says back what it is told, until it hears `exit`. Every call is noted. */
function echoShell(notes: string[]): (args: readonly string[], options: SpawnOptions) => Promise<Child> {
    return async (args, { pty, user, env }) => {
        notes.push(
            `start ${args.join(' ')} ${pty?.columns}x${pty?.rows} ${user ?? ''} ${env?.['TERM'] ?? ''}`
        );
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
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
            stdout: readable as never,
            stderr: ReadableStream.from([]) as never,
            exited: exit.promise,
            stdin: new WritableStream({
                async write(chunk) {
                    if (Buffer.from(chunk).toString() === 'exit') {
                        end(7);
                        return;
                    }
                    await writer.write(chunk);
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
    let files: Harness;
    const open = (
        messages: AsyncIterable<string | Uint8Array>,
        sent: (string | Uint8Array)[],
        closed: (number | undefined)[] = []
    ): Promise<void> =>
        files.guest.socket({
            route: 'terminal',
            request: {
                ...files.request({}),
                params: { ticket: 'one-time' },
                ticket: { columns: 100, rows: 30 }
            },
            signal: new AbortController().signal,
            messages,
            send: async ({ data }) =>
                void sent.push(typeof data === 'string' ? data : Buffer.from(data).toString()),
            close: async ({ code }) => void closed.push(code)
        });

    afterEach(async () => files.close());

    it('says which tool is missing before it gives a ticket', async () => {
        files = await Harness.start({
            settings: { terminalShell: 'no-such-shell-here' },
            pty: async () =>
                Promise.reject(
                    Object.assign(new Error('not installed'), {
                        '~portico': 'failure',
                        code: 50302,
                        reason: 'TOOL_MISSING',
                        data: { tool: 'pty', install: 'npm install' }
                    })
                )
        });
        const { code, reason, data } = await files.post('/terminals', {});
        expect([code, reason]).to.equal([50302, 'TOOL_MISSING']);
        expect(data.install).to.equal('npm install');
        const health = await files.guest.health({ name: 'terminal', signal: new AbortController().signal });
        expect(health.state).to.equal('degraded');
        expect(health.remedy?.command).to.equal('npm install');
    });

    it('carries bytes and sizes both ways, and ends the shell with the socket', async () => {
        const notes: string[] = [];
        files = await Harness.start({ settings: { terminalUser: 'www-data' }, pty: echoShell(notes) });
        const { data } = await files.post('/terminals', { columns: 100, rows: 30 });
        expect(data).to.include({ ticket: 'one-time', path: '/api/plugins/filemanager/terminals/one-time' });
        const sent: string[] = [];
        const closed: number[] = [];
        await open(
            (async function* () {
                yield Buffer.from('hello');
                yield '{"columns":120,"rows":40}';
                while (!sent.includes('hello')) {
                    await new Promise((resolve) => setImmediate(resolve));
                }
            })(),
            sent
        );
        expect(notes).to.equal([
            'start -c exit 0 80x24 www-data xterm-256color',
            'disposed',
            'start -l 100x30 www-data xterm-256color',
            'resize 120x40',
            'kill SIGHUP',
            'disposed'
        ]);
        expect(files.audited).to.have.length(2);
        const again: string[] = [];
        const left = Promise.withResolvers<void>();
        await open(
            (async function* () {
                yield Buffer.from('exit');
                while (!again.some((text) => text.includes('exitCode'))) {
                    await new Promise((resolve) => setImmediate(resolve));
                }
                left.resolve();
            })(),
            again,
            closed
        );
        await left.promise;
        expect(again.at(-1)).to.equal('{"exitCode":7}');
        expect(closed).to.equal([1000]);
    });

    it('refuses what is no size, and more terminals than are allowed', async () => {
        files = await Harness.start({ settings: { terminals: 1 }, pty: echoShell([]) });
        const [sent, closed]: [string[], number[]] = [[], []];
        await open(
            (async function* () {
                yield '{"columns":0,"rows":"x"}';
            })(),
            sent,
            closed
        );
        expect(JSON.parse(sent.at(-1) ?? '').error.code).to.equal(40001);
        expect(closed).to.contain(1011);
        const leave = Promise.withResolvers<void>();
        const entered = Promise.withResolvers<void>();
        const first = open(
            (async function* () {
                entered.resolve();
                await leave.promise;
                yield '{"columns":1,"rows":1}';
            })(),
            []
        );
        await entered.promise;
        expect((await files.post('/terminals', {})).reason).to.equal('TOO_MANY_TERMINALS');
        leave.resolve();
        await first;
        expect((await files.post('/terminals', {})).status).to.equal(200);
        expect((await files.post('/terminals', { columns: 0 })).code).to.equal(40001);
    });
});

describe('@portico/plugin-filemanager', () => {
    let files: Harness;

    afterEach(async () => files.close());

    it('leaves nothing behind after a hundred starts and ends', { timeout: 120_000 }, async () => {
        files = await Harness.start();
        const open = (): number =>
            process
                .getActiveResourcesInfo()
                .filter((kind) => kind !== 'Immediate' && kind !== 'TTYWrap' && kind !== 'PipeWrap').length;
        await files.put('kept', 'kept');
        await files.end();
        const before = open();
        for (let round = 0; round < 100; round += 1) {
            await files.begin();
            expect((await files.read('kept')).data).to.equal('kept');
            await files.put('kept', 'kept');
            const { leaked } = await files.end();
            expect(leaked).to.equal([]);
        }
        expect(open()).to.be.at.most(before);
        await files.begin();
    });

    it('shows in its README the routes that it has', async () => {
        files = await Harness.start();
        const readme = readFileSync(
            new URL('../../../../extensions/filemanager/README.md', import.meta.url),
            'utf8'
        );
        const shown = [
            ...readme.matchAll(
                /^\| ((?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|WebSocket)[A-Z, ]*) `([^`]+)` \| ([a-z]+) \|/gm
            )
        ].map(([, methods, path, access]) => `${methods?.trim()} ${path?.replace(/\?.*/, '')} ${access}`);
        const mounted = files.routes.map(
            ({ kind, methods, path, access }) =>
                `${kind === 'socket' ? 'WebSocket' : methods.join(', ')} ${path} ${typeof access === 'string' ? access : 'permission' in access ? access.permission : 'public'}`
        );
        expect(shown.sort()).to.equal(mounted.sort());
        const settings = (await files.guest.define({})).settings as { keys: Record<string, unknown> };
        expect([...readme.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name).sort()).to.equal(
            Object.keys(settings.keys).sort()
        );
    });
});
