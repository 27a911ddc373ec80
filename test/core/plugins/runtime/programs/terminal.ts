import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Child, type Context, definePlugin, type SpawnOptions } from '@portico/sdk';

import type {
    Capabilities,
    Generation
} from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';
import { itUnless } from '../../../../support/skip.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;
const itAsRoot = itUnless(
    process.getuid?.() === 0 ? undefined : 'only root can run programs as another account',
    it
);

let rig: PluginRig;
let generation: Generation;
let granted: Capabilities;

async function contextWith(capabilities: Capabilities): Promise<Context> {
    let found!: Context;
    granted = capabilities;
    generation = await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
            }
        }),
        { capabilities, grants: () => granted }
    );
    return found;
}

/** Reads what is shown, and types. */
class Screen {
    readonly child: Child;
    text = '';
    readonly over: Promise<void>;
    readonly #writer: WritableStreamDefaultWriter<Uint8Array>;

    constructor(child: Child) {
        this.child = child;
        this.#writer = child.stdin.getWriter();
        this.over = (async () => {
            for await (const chunk of child.stdout) {
                this.text += Buffer.from(chunk).toString();
            }
        })().catch(() => undefined);
    }

    async type(text: string): Promise<void> {
        await this.#writer.write(Buffer.from(text));
    }

    /** Types a line, and waits for what it shows. */
    async ask(line: string, shown: RegExp): Promise<RegExpExecArray> {
        const from = this.text.length;
        await this.type(`${line}\n`);
        await until(() => shown.test(this.text.slice(from)));
        return shown.exec(this.text.slice(from)) as RegExpExecArray;
    }
}

const shell = async (ctx: Context, options: Partial<SpawnOptions> = {}): Promise<Screen> =>
    new Screen(
        await ctx.spawn('bash', ['--norc', '--noprofile', '-i'], {
            pty: { columns: 100, rows: 30 },
            env: { PS1: '$ ' },
            ...options
        })
    );
const isAlive = (pid: number): boolean =>
    existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
const openFiles = (): string[] =>
    readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
            return [readlinkSync(`/proc/self/fd/${fd}`)];
        } catch {
            return [];
        }
    });
const lines = (): string[] => readdirSync('/dev/pts').filter((name) => name !== 'ptmx');
const children = (): number[] =>
    readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => {
            try {
                const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
                return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(process.pid);
            } catch {
                return false;
            }
        })
        .map(Number);

describe('ctx.spawn with a terminal', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
    });
    afterEach(() => rig.close());

    it('gives a shell a terminal of its own, with its size, and says how it ended', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const screen = await shell(ctx);
        await screen.ask('tty', /\/dev\/pts\/\d+/);
        await screen.ask('stty size', /^30 100/m);
        await screen.child.resize(132, 50);
        await screen.ask('stty size', /^50 132/m);
        await screen.ask('echo $TERM', /^xterm-256color/m);
        await screen.ask(
            'ps -o pid=,pgid=,sid= -p $$',
            new RegExp(`${screen.child.pid}\\s+${screen.child.pid}\\s+${screen.child.pid}`)
        );
        await screen.type('exit 7\n');
        expect(await screen.child.exited).to.equal({ code: 7, signal: null, timedOut: false });
        await screen.over;
        await screen.child.resize(10, 10);
        await until(() => generation.held().every(({ kind }) => kind !== 'process'));
    });

    it('hands keys on: an interrupt reaches the job in front, and nothing else', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const screen = await shell(ctx);
        const [, pid = ''] = await screen.ask('sleep 600 & echo job $!', /job (\d+)/);
        await screen.ask("sh -c 'echo up-$((40+2)); exec cat'", /up-42/);
        await screen.type('\u0003');
        await until(() => /\^C[^]*\$ $/.test(screen.text));
        await screen.ask('echo still-$((40+2))', /still-42/);
        expect(isAlive(Number(pid))).to.be.true();
        await screen.child[Symbol.asyncDispose]();
        await until(() => !isAlive(Number(pid)));
    });

    it('refuses sizes that no terminal has, and a program that is not granted, and leaves nothing of it', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const files = openFiles().length;
        const before = [lines(), children()];
        for (const pty of [
            { columns: 0, rows: 10 },
            { columns: 10, rows: 70_000 },
            { columns: 1.5, rows: 1 },
            { columns: '80' as never, rows: 1 } // wrong on purpose
        ]) {
            await expect(ctx.spawn('bash', [], { pty })).to.reject(TypeError);
        }
        await expect(ctx.spawn('sh', [], { pty: { columns: 1, rows: 1 } })).to.reject(/capability/i);
        await expect(
            ctx.spawn('bash', [], { pty: { columns: 1, rows: 1 }, cwd: '/no/such/folder' })
        ).to.reject(/There is no folder/);
        await expect((await ctx.spawn('bash', ['-c', 'exit 0'])).resize(1, 1)).to.reject(TypeError);
        await until(() => openFiles().length === files);
        expect([lines(), children()]).to.equal(before);
    });

    it('passes no descriptor on, neither into the terminal nor from it into other programs', async () => {
        const ctx = await contextWith({ exec: ['bash', 'ls'] });
        const screen = await shell(ctx);
        const other = await shell(ctx);
        await other.ask('echo here-$((40+2))', /here-42/);
        await screen.type('ls -l /proc/self/fd | cat; echo over-$((40+2))\n');
        await until(() => /over-42/.test(screen.text));
        expect(screen.text).to.not.match(/ptmx|socket:|\.db/);
        expect((await ctx.exec('ls', ['-l', '/proc/self/fd'])).stdout).to.not.match(/ptmx|pts/);
        expect(openFiles().filter((path) => /ptmx|pts/.test(path))).to.equal([]);
    });

    it('stops a program that shows more than is read, and loses nothing of it', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const child = await ctx.spawn(
            'bash',
            ['-c', 'stty -opost; head -c 3000000 /dev/zero | tr "\\0" x; echo done > ended'],
            { pty: { columns: 80, rows: 24 } }
        );
        await wait(300);
        expect(existsSync(`${ctx.dataDir}/ended`)).to.be.false();
        let bytes = 0;
        for await (const chunk of child.stdout) {
            bytes += chunk.length;
        }
        expect(bytes).to.equal(3_000_000);
        expect((await child.exited).code).to.equal(0);
    });

    it('shows the last words of a program that ended before they were read', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const child = await ctx.spawn('bash', ['-c', 'echo last words; exit 3'], {
            pty: { columns: 80, rows: 24 }
        });
        expect((await child.exited).code).to.equal(3);
        expect(await new Response(child.stdout).text()).to.contain('last words');
        expect(await new Response(child.stderr).text()).to.equal('');
    });

    it('ends with the handle, the time limit, the signal, the grant and the generation, with all processes of the session', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const before = children();
        const ends: (readonly [
            Partial<SpawnOptions>,
            (screen: Screen, stop: AbortController) => Promise<unknown>
        ])[] = [
            [{}, async (screen) => screen.child[Symbol.asyncDispose]()],
            [{}, (screen) => screen.child.kill('SIGHUP')],
            [{ timeoutSeconds: 1.5 }, async () => undefined],
            [{}, async (_screen, stop) => stop.abort()],
            [
                {},
                async () => {
                    granted = {};
                    await generation.revoke();
                    granted = { exec: ['bash'] };
                }
            ],
            [{}, () => generation.close('test')]
        ];
        for (const [options, end] of ends) {
            const stop = new AbortController();
            const screen = await shell(ctx, { ...options, signal: stop.signal });
            const [, one = ''] = await screen.ask(
                'trap "" TERM; (trap "" HUP TERM; sleep 600) & echo job $!',
                /job (\d+)/
            );
            const [, two = ''] = await screen.ask('env -i sleep 602 & echo job $!', /job (\d+)/);
            await end(screen, stop);
            await screen.child.exited;
            await until(() => [screen.child.pid, Number(one), Number(two)].every((pid) => !isAlive(pid)));
            await until(() => generation.held().every(({ kind }) => kind !== 'process'));
        }
        await until(() => children().length === before.length);
    });

    it('runs nothing of what was typed ahead once its signal has aborted, also in a shell that ignores a hang-up', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const stop = new AbortController();
        const screen = await shell(ctx, { signal: stop.signal });
        await screen.ask('trap "" HUP TERM; echo deaf-$((40+2))', /deaf-42/);
        await screen.type(`sleep 0.05; echo up-$((40+2)); sleep 0.2\ntouch ${ctx.dataDir}/late\n`);
        await until(() => /up-42/.test(screen.text));
        stop.abort();
        await screen.child.exited;
        await until(() => generation.held().every(({ kind }) => kind !== 'process'));
        expect(existsSync(`${ctx.dataDir}/late`)).to.be.false();
    });

    it('leaves nothing behind after a hundred terminals', { timeout: 120_000 }, async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        const before = { files: openFiles().length, lines: lines().length, children: children().length };
        for (let round = 0; round < 25; round += 1) {
            await Promise.all(
                [0, 1, 2, 3].map(async (number) => {
                    const child = await ctx.spawn(
                        'bash',
                        ['-c', `echo ${number}; ${number % 2 === 0 ? 'exit 0' : 'sleep 600'}`],
                        { pty: { columns: 80, rows: 24 } }
                    );
                    const screen = new Screen(child);
                    await until(() => screen.text.includes(String(number)));
                    if (number % 2 !== 0) {
                        await child[Symbol.asyncDispose]();
                    }
                    await child.exited;
                    await screen.over;
                })
            );
        }
        await until(
            () =>
                openFiles().length <= before.files &&
                lines().length <= before.lines &&
                children().length <= before.children
        );
        await until(() => generation.held().every(({ kind }) => kind !== 'process'));
    });

    itAsRoot("runs as another account: its own terminal, no group and no right of the panel's", async () => {
        const ctx = await contextWith({ exec: ['bash'], users: ['nobody'] });
        const screen = await shell(ctx, { user: 'nobody', cwd: '/' });
        await screen.ask('id', /uid=\d+\(nobody\) gid=\d+\(\w+\) groups=\d+\(\w+\)\r?\n/);
        await screen.ask('stat -c %U $(tty)', /^nobody/m);
        await screen.ask('echo yes > /dev/tty', /^yes/m);
        await screen.child.resize(40, 10);
        await screen.ask('stty size', /^10 40/m);
        await screen.child[Symbol.asyncDispose]();
        await expect(shell(ctx, { user: 'root' })).to.reject(/capability/i);
        await expect(
            shell(await contextWith({ exec: ['bash'], users: ['no-such-account'] }), {
                user: 'no-such-account'
            })
        ).to.reject(/no account/);
    });

    it('is on record like any program', async () => {
        const ctx = await contextWith({ exec: ['bash'] });
        await using child = await ctx.spawn('bash', ['-c', 'exit 0'], { pty: { columns: 80, rows: 24 } });
        await child.exited;
        const [use] = rig.http.recorded.filter(({ action }) => action === 'exec');
        expect([use?.resourceId, (use?.after as { args: string }).args]).to.equal([
            'bash',
            '["-c","exit 0"]'
        ]);
    });
});
