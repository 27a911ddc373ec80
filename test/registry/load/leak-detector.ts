import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdirSync, watch, watchFile, writeFileSync } from 'node:fs';
import { createServer as createHttp, get, type Server } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin, joi } from '@portico/sdk';

import { LeakDetector } from '../../../registry/src/load/leak-detector.ts';
import { createPluginRig, type PluginRig, type RunOptions } from '../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;

const kinds = (leaked: readonly { readonly kind: string }[]): string[] =>
    leaked.map(({ kind }) => kind).sort();
const closed = async (
    start: (ctx: Context) => unknown,
    handle: (ctx: Context) => unknown = () => null,
    options: RunOptions = {}
): Promise<readonly { readonly kind: string; readonly name: string; readonly error: string }[]> => {
    const generation = await rig.run(
        definePlugin({
            settings: joi.object({ n: joi.number().default(1) }),
            setup(ctx) {
                ctx.onStart(async () => void (await start(ctx)));
                ctx.route({
                    method: 'POST',
                    path: '/do',
                    access: 'write',
                    audit: false,
                    async handler() {
                        await handle(ctx);
                        return null;
                    }
                });
            }
        }),
        options
    );
    expect((await rig.ask('admin', 'POST', '/api/plugins/probe/do')).code).to.equal(0);
    return (await generation.close('test')).leaked;
};

describe('what a plugin leaves behind past its context', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
    });
    afterEach(() => rig.close());

    it('is named with its place, and ended: timers, watchers and listeners of its start', async () => {
        let ticks = 0;
        mkdirSync(join(rig.root, 'watched'));
        const before = process.listenerCount('SIGUSR2');
        const leaked = await closed(async () => {
            setInterval(() => {
                ticks += 1;
            }, 5);
            await wait(1);
            setTimeout(() => undefined, 60_000).unref();
            watch(join(rig.root, 'watched'), () => undefined);
            process.on('SIGUSR2', () => undefined);
        });
        expect(kinds(leaked)).to.equal([
            'listener for SIGUSR2 of the process',
            'timer',
            'timer',
            'watcher of files'
        ]);
        expect(
            leaked.every(
                ({ name, error }) => /load\/leak-detector\.ts:\d+$/.test(name) && /ended/.test(error)
            ),
            JSON.stringify(leaked)
        ).to.be.true();
        expect(process.listenerCount('SIGUSR2')).to.equal(before);
        const then = ticks;
        await wait(30);
        expect(ticks).to.equal(then);
        writeFileSync(join(rig.root, 'watched', 'file'), '');
    });

    it('is found also when a handler started it: servers, connections, children, threads', async () => {
        let server!: Server;
        let pid = 0;
        const outer = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
        await new Promise((resolve) => outer.once('listening', resolve));
        const leaked = await closed(
            () => undefined,
            async () => {
                server = createHttp().listen(0, '127.0.0.1');
                await new Promise((resolve) => server.once('listening', resolve));
                connect((outer.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
                createSocket('udp4').bind(0, '127.0.0.1');
                pid = spawn('sleep', ['600']).pid ?? 0;
                void new Worker('setInterval(() => undefined, 1000)', { eval: true });
            }
        );
        outer.close();
        expect(kinds(leaked)).to.equal(['child process', 'connection', 'server', 'socket', 'thread']);
        expect(server.listening).to.be.false();
        for (let tries = 0; tries < 200; tries += 1) {
            try {
                process.kill(pid, 0);
                await wait(10);
            } catch {
                return;
            }
        }
        throw new Error('The child goes on');
    });

    it('is found, but named without a place, where the plugin keeps stacks too short to show one', async () => {
        const leaked = await closed(
            () => undefined,
            async () => {
                const { stackTraceLimit } = Error;
                Error.stackTraceLimit = 1;
                const server = createHttp().listen(0, '127.0.0.1');
                Error.stackTraceLimit = stackTraceLimit;
                await new Promise((resolve) => server.once('listening', resolve));
            }
        );
        expect(leaked.map(({ kind, name }) => [kind, name])).to.equal([['server', 'an unknown place']]);
    });

    it('is nothing where all was ended, or came through the context', async () => {
        const leaked = await closed(
            async (ctx) => {
                const timer = setInterval(() => undefined, 1000);
                clearInterval(timer);
                await wait(2);
                const server = createHttp().listen(0, '127.0.0.1');
                await new Promise((resolve) => server.once('listening', resolve));
                await new Promise((resolve) => server.close(resolve));
                await ctx.exec('true', []);
                await ctx.spawn('sleep', ['600']);
                await ctx.spawn('sleep', ['600'], { pty: { columns: 80, rows: 24 } });
                await ctx.schedule('often', { everySeconds: 60 }, async () => undefined);
                await ctx.db.read(async () => null);
                AbortSignal.timeout(100_000);
            },
            async (ctx) => {
                await ctx.exec('true', []);
            },
            { capabilities: { exec: ['true', 'sleep'] } }
        );
        expect(leaked).to.equal([]);
    });

    it('is not what the panel, or another plugin, started meanwhile', async () => {
        const stop = Promise.withResolvers<void>();
        const other = await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.onStart(() => {
                        const timer = setInterval(() => undefined, 1000);
                        void stop.promise.then(() => clearInterval(timer));
                    });
                }
            }),
            { name: 'other' }
        );
        const own = setInterval(() => undefined, 1000);
        const leaked = await closed(
            async () =>
                new Promise<void>((resolve) => {
                    get(`${rig.url}/api/things`, (answer) => answer.resume().once('end', resolve)).on(
                        'error',
                        () => resolve()
                    );
                })
        );
        clearInterval(own);
        expect(kinds(leaked).filter((kind) => kind !== 'connection')).to.equal([]);
        stop.resolve();
        await wait(1);
        expect((await other.close('test')).leaked).to.equal([]);
    });

    it('is found among timers only while they are looked for, unless that is always', async () => {
        const seldom = new LeakDetector(false);
        const timer = seldom.enter(() => setInterval(() => undefined, 1000));
        expect(await seldom.end()).to.equal([]);
        clearInterval(timer);
        const always = new LeakDetector(true);
        always.enter(() => setInterval(() => undefined, 1000));
        expect((await always.end()).length).to.equal(1);
        expect(await always.end()).to.equal([]);
        const third = new LeakDetector(false);
        await third.looking(async () =>
            third.enter(async () => {
                setInterval(() => undefined, 1000);
                third.leave(() => setTimeout(() => undefined, 1));
            })
        );
        expect((await third.end()).map(({ kind }) => kind)).to.equal(['timer']);
    });

    it('is found where a turn follows upon a turn, and where a file is asked for its state again and again', async () => {
        const detector = new LeakDetector(true);
        let turns = 0;
        const turn = (): void => {
            turns += 1;
            setImmediate(turn);
        };
        detector.enter(() => {
            turn();
            watchFile(join(rig.root, 'nothing'), () => undefined);
            setImmediate(() => undefined);
        });
        expect(kinds(await detector.end())).to.equal(['timer', 'watcher of files']);
        const then = turns;
        await wait(5);
        expect(turns).to.be.within(then, then + 1);
    });

    it('is found among thousands that have ended', async () => {
        const detector = new LeakDetector(true);
        detector.enter(() => {
            for (let n = 0; n < 5_000; n += 1) {
                clearTimeout(setTimeout(() => undefined, 60_000));
            }
            setInterval(() => undefined, 1000);
        });
        expect(kinds(await detector.end())).to.equal(['timer']);
    });

    it('leaves no watch behind itself', async () => {
        const before = process.listenerCount('newListener');
        const generation = await rig.run(definePlugin({ setup: () => undefined }));
        await generation.close('test');
        expect((await generation.close('again')).leaked).to.equal([]);
        expect(process.listenerCount('newListener')).to.equal(before);
    });
});
