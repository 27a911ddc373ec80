import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin, type FailureError } from '@portico/sdk';

import type {
    Capabilities,
    Generation
} from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, type PluginRig, type RigOptions } from '../../../../support/plugins/host.ts';
import { selfSigned } from '../../../../support/servers/self-signed.ts';
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

async function contextWith(
    capabilities: Capabilities,
    grants: () => Capabilities = () => capabilities
): Promise<Context> {
    let found!: Context;
    generation = await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
            }
        }),
        { capabilities, grants }
    );
    return found;
}

async function failureOf(work: Promise<unknown>): Promise<FailureError> {
    const thrown: unknown = await work.then(
        () => null,
        (error: unknown) => error
    );
    if (thrown === null) {
        throw new Error('It did not fail');
    }
    return thrown as FailureError;
}

const isAlive = (pid: number): boolean => {
    try {
        // A process that ended and was not waited for is a zombie.
        return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
        return false;
    }
};

const nobody = (): number => Number(/^nobody:[^:]*:(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[1]);

/** Ends after the first line, also while a child holds the pipe. */
const firstLine = (): TransformStream<Uint8Array, Uint8Array> =>
    new TransformStream({
        transform(chunk, controller) {
            controller.enqueue(chunk);
            controller.terminate();
        }
    });

async function start(options: RigOptions = {}): Promise<void> {
    rig = await createPluginRig(options);
}

describe('ctx.exec and ctx.spawn', () => {
    beforeEach(() => start());
    afterEach(() => rig.close());

    it('run arguments as they are, in an environment made from scratch', async () => {
        const ctx = await contextWith({ exec: ['printf', 'env', 'cat'] });
        expect(await ctx.exec('printf', ['%s|', '$HOME', '; ls', '*'])).to.equal({
            code: 0,
            signal: null,
            timedOut: false,
            stdout: '$HOME|; ls|*|',
            stderr: '',
            truncated: false
        });
        process.env['PORTICO_TEST_SECRET'] = 'must not be seen';
        const { stdout } = await ctx.exec('env', [], { env: { MINE: 'yes' } });
        delete process.env['PORTICO_TEST_SECRET'];
        expect(
            stdout
                .split('\n')
                .map((line) => line.split('=')[0])
                .filter(Boolean)
                .sort()
        ).to.equal(
            [
                'HOME',
                'LANG',
                'MINE',
                'PATH',
                'PORTICO_CHILD',
                ...(process.env['TZ'] === undefined ? [] : ['TZ'])
            ].sort()
        );
        expect((await ctx.exec('cat', [], { stdin: 'fed' })).stdout).to.equal('fed');
    });

    it('refuse what is not granted, now and at any moment later', async () => {
        let granted: Capabilities = { exec: ['sleep', 'id'], users: ['root'] };
        const ctx = await contextWith({ exec: ['sleep', 'id'], users: ['root'] }, () => granted);
        for (const file of ['sh', '/bin/sleep', '../bin/sleep', '']) {
            expect((await failureOf(ctx.exec(file, []))).reason).to.equal('CAPABILITY_MISSING');
        }
        expect((await failureOf(ctx.exec('sleep', ['1'], { user: 'nobody' }))).reason).to.equal(
            'CAPABILITY_MISSING'
        );
        for (const env of [{ PATH: '/tmp' }, { LD_PRELOAD: 'x' }, { NODE_OPTIONS: 'x' }, { 'A=B': 'x' }]) {
            await expect(ctx.exec('id', [], { env: env as Record<string, string> })).to.reject(TypeError);
        }
        const child = await ctx.spawn('sleep', ['600']);
        granted = { exec: ['id'] };
        await generation.revoke();
        expect((await child.exited).signal).to.equal('SIGTERM');
        expect((await failureOf(ctx.spawn('sleep', ['1']))).reason).to.equal('CAPABILITY_MISSING');
    });

    itAsRoot(
        "run as another account with nothing of the panel's: no group, no home, no descriptor",
        async () => {
            const ctx = await contextWith({ exec: ['id', 'sh', 'sleep'], users: ['nobody'] });
            const { stdout } = await ctx.exec(
                'sh',
                [
                    '-c',
                    'id -u; id -G; echo $HOME; ls /proc/self/fd | wc -l; cat /etc/shadow 2>&1 | head -c 40'
                ],
                { user: 'nobody', cwd: '/' }
            );
            const [uid, groups, home, files, shadow] = stdout.split('\n');
            expect([uid, groups?.split(' ').length, Number(files) <= 5]).to.equal([
                String(nobody()),
                1,
                true
            ]);
            expect(home).to.not.equal(process.env['HOME']);
            expect(shadow).to.match(/denied/);
            for (const user of ['root', 'daemon', 'nobody; id', '-x', '']) {
                expect((await failureOf(ctx.exec('id', [], { user }))).reason, user).to.equal(
                    'CAPABILITY_MISSING'
                );
            }
            const child = await ctx.spawn('sleep', ['600'], { user: 'nobody', cwd: '/' });
            expect(readFileSync(`/proc/${child.pid}/status`, 'utf8')).to.match(
                new RegExp(`^Uid:\\s+${nobody()}\\s+${nobody()}`, 'm')
            );
            await generation.close('test');
            expect(isAlive(child.pid)).to.be.false();
        }
    );

    it("stay the plugin's when they leave a child behind, until its end", async () => {
        const ctx = await contextWith({ exec: ['sh'] });
        const child = await ctx.spawn('sh', ['-c', 'setsid sleep 600 & echo $!']);
        const pid = Number(await new Response(child.stdout.pipeThrough(firstLine())).text());
        expect((await child.exited).code).to.equal(0);
        expect([isAlive(pid), generation.held().some(({ kind }) => kind === 'process')]).to.equal([
            true,
            true
        ]);
        expect((await generation.close('test')).leaked).to.equal([]);
        expect(isAlive(pid)).to.be.false();
    });

    it('say which program is missing, and do not take an exit code for a failure', async () => {
        const ctx = await contextWith({ exec: ['no-such-program', 'false'] });
        const missing = await failureOf(ctx.exec('no-such-program', []));
        expect([missing.code, missing.reason, missing.data?.['tool']]).to.equal([
            50302,
            'TOOL_MISSING',
            'no-such-program'
        ]);
        expect((await ctx.exec('false', [])).code).to.equal(1);
    });

    it('end at their time limit with everything that they started, even what left the group', async () => {
        const ctx = await contextWith({ exec: ['sh'] });
        const script = 'sleep 600 & setsid sleep 601 & echo $! ; trap "" TERM; while true; do sleep 1; done';
        const result = await ctx.exec('sh', ['-c', script], { timeoutSeconds: 0.3 });
        expect([result.timedOut, result.code]).to.equal([true, null]);
        const pid = Number(result.stdout.trim());
        await until(() => !isAlive(pid));
    });

    it('cap their output and their means', async () => {
        const ctx = await contextWith({ exec: ['sh', 'head'] });
        const big = await ctx.exec('head', ['-c', '3000000', '/dev/zero'], { maxOutputBytes: 1000 });
        expect([big.code, big.stdout.length, big.truncated]).to.equal([0, 1000, true]);
        const limited = await ctx.exec('sh', ['-c', 'ulimit -n; ulimit -f'], {
            limits: { openFiles: 20, fileBytes: 1024 }
        });
        expect(limited.stdout.split('\n')[0]).to.equal('20');
    });

    it('stream both ways, end with a signal, and end with their scope', async () => {
        const ctx = await contextWith({ exec: ['cat', 'sleep'] });
        const child = await ctx.spawn('cat', []);
        const writer = child.stdin.getWriter();
        await writer.write(Buffer.from('hello'));
        await writer.close();
        expect(await new Response(child.stdout).text()).to.equal('hello');
        expect((await child.exited).code).to.equal(0);
        const controller = new AbortController();
        const other = await ctx.spawn('sleep', ['600'], { signal: controller.signal });
        controller.abort();
        expect((await other.exited).signal).to.equal('SIGTERM');
        const third = await ctx.spawn('sleep', ['600']);
        await generation.close('test');
        expect(isAlive(third.pid)).to.be.false();
    });

    it('are on record, counted', async () => {
        const ctx = await contextWith({ exec: ['true'] });
        await Promise.all([1, 2, 3].map(() => ctx.exec('true', ['--', 'x'])));
        await generation.close('test');
        const uses = rig.http.recorded.filter(({ action }) => action === 'exec');
        expect(
            uses.map(({ resourceId, after, actor }) => [
                resourceId,
                (after as { count: number }).count,
                actor.plugin
            ])
        ).to.equal([
            ['true', 1, 'probe'],
            ['true', 2, 'probe']
        ]);
    });
});

describe('ctx.files', () => {
    let folder: string;
    let outside: string;

    beforeEach(async () => {
        await start();
        folder = join(rig.root, 'root');
        outside = join(rig.root, 'outside');
        [folder, outside, join(folder, 'sub'), join(rig.root, 'forbidden')].forEach((path) =>
            mkdirSync(path, { recursive: true })
        );
        writeFileSync(join(outside, 'secret.txt'), 'secret');
        writeFileSync(join(folder, 'a.txt'), 'inside');
        symlinkSync(outside, join(folder, 'link'));
        symlinkSync(join(outside, 'secret.txt'), join(folder, 'file-link'));
    });
    afterEach(() => rig.close());

    it('never leave their root, by no spelling and no link', async () => {
        const files = (await contextWith({ files: [folder] })).files(folder);
        for (const path of [
            '../outside/secret.txt',
            'link/secret.txt',
            'file-link',
            'sub/../../outside/secret.txt',
            '/etc/passwd',
            'a.txt/x',
            './a.txt',
            '..',
            'sub/..',
            'a\0b',
            'x'.repeat(5000)
        ]) {
            for (const work of [
                () => files.open(path),
                () => files.open(path, 'w'),
                () => files.list(path),
                () => files.chmod(path, 0o777),
                () => files.remove(`${path}/secret.txt`)
            ]) {
                expect((await failureOf(work())).code, path).to.equal(40400);
            }
        }
        expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).to.equal('secret');
        expect((await files.stat('link')).type).to.equal('link');
        expect(await files.readLink('file-link')).to.equal(join(outside, 'secret.txt'));
    });

    it('read, write, list, make, move and remove below it', async () => {
        const files = (await contextWith({ files: [folder] })).files(folder);
        const handle = await files.open('a.txt');
        expect(await handle.readFile('utf8')).to.equal('inside');
        await handle.close();
        const made = await files.open('sub/new.txt', 'wx');
        await made.writeFile('new');
        await made.close();
        expect((await failureOf(files.open('sub/new.txt', 'wx'))).code).to.equal(40900);
        await files.createFolder('x/y/z', { parents: true });
        expect((await failureOf(files.createFolder('x'))).code).to.equal(40900);
        await files.move('sub/new.txt', 'x/y/z/moved.txt');
        expect((await failureOf(files.move('a.txt', 'x/y/z/moved.txt'))).code).to.equal(40900);
        await files.move('x/y', 'sub/y');
        expect((await failureOf(files.move('sub', 'sub/y/inside'))).code).to.equal(40400);
        expect((await files.list('sub/y/z')).map(({ name, type, size }) => [name, type, size])).to.equal([
            ['moved.txt', 'file', 3]
        ]);
        expect((await failureOf(files.remove('sub'))).code).to.equal(40900);
        await files.remove('sub', { recursive: true });
        await files.remove('link');
        expect([existsSync(join(folder, 'sub')), existsSync(join(outside, 'secret.txt'))]).to.equal([
            false,
            true
        ]);
        expect((await failureOf(files.remove('', { recursive: true }))).code).to.equal(40400);
    });

    it('hold against a program that swaps folders for links all the time', async () => {
        const files = (await contextWith({ files: [folder] })).files(folder);
        writeFileSync(join(folder, 'sub', 'secret.txt'), 'inside');
        let going = true;
        const swapping = (async () => {
            while (going) {
                renameSync(join(folder, 'sub'), join(folder, 'away'));
                symlinkSync(outside, join(folder, 'sub'));
                await wait(0);
                renameSync(join(folder, 'sub'), join(folder, 'gone'));
                renameSync(join(folder, 'away'), join(folder, 'sub'));
                await wait(0);
            }
        })();
        const texts = new Set<string>();
        for (let tries = 0; tries < 300; tries += 1) {
            const handle = await files.open('sub/secret.txt').catch(() => null);
            if (handle !== null) {
                texts.add(await handle.readFile('utf8'));
                await handle.close();
            }
        }
        going = false;
        await swapping;
        expect([...texts]).to.equal(['inside']);
    });

    it('open a single file that is granted, and nothing beside it', async () => {
        const path = join(folder, 'a.txt');
        const ctx = await contextWith({ files: [path] });
        const file = ctx.files(path);
        const handle = await file.open('', 'r+');
        await handle.write('INSIDE', 0);
        await handle.close();
        await file.chmod('', 0o600);
        expect(await file.stat('')).to.include({ name: '', type: 'file', size: 6, mode: 0o600 });
        expect(readFileSync(path, 'utf8')).to.equal('INSIDE');
        for (const work of [
            () => file.open('', 'wx'),
            () => file.list(''),
            () => file.open('x'),
            () => file.remove(''),
            () => file.move('', 'b.txt'),
            () => file.createFolder('', { parents: true })
        ]) {
            expect((await failureOf(work())).code, String(work)).to.be.within(40400, 40900);
        }
        expect((await failureOf(ctx.files(folder).open('a.txt'))).reason).to.equal('CAPABILITY_MISSING');
        renameSync(path, join(folder, 'old.txt'));
        expect((await failureOf(file.open(''))).code).to.equal(40400);
    });

    it("open only what is granted, and never the panel's own folder", async () => {
        const ctx = await contextWith({ files: [folder] });
        expect((await failureOf(ctx.files(outside).list(''))).reason).to.equal('CAPABILITY_MISSING');
        expect((await failureOf(ctx.files(join(folder, 'link')).list(''))).reason).to.equal(
            'CAPABILITY_MISSING'
        );
        expect(await ctx.files(join(folder, 'sub')).list('')).to.equal([]);
        await ctx.files(ctx.dataDir).createFolder('own');
        await generation.close('test');
        const any = await contextWith({ files: ['*'] });
        expect((await any.files(outside).list('')).map(({ name }) => name)).to.equal(['secret.txt']);
        expect((await failureOf(any.files(join(rig.root, 'forbidden')).list(''))).reason).to.equal(
            'CAPABILITY_MISSING'
        );
        expect((await failureOf(any.files(rig.root).list('forbidden'))).code).to.equal(40400);
    });

    it('close what the plugin left open', async () => {
        const files = (await contextWith({ files: [folder] })).files(folder);
        const handle = await files.open('a.txt');
        await generation.close('test');
        expect(handle.fd).to.equal(-1);
    });
});

describe('ctx.fetch and ctx.dial', () => {
    let port: number;
    let server: ReturnType<typeof createServer>;
    const seen: (string | undefined)[] = [];

    beforeEach(async () => {
        await start();
        server = createServer((request, response) => {
            seen.push(request.headers.authorization);
            if (request.url === '/away') {
                response.writeHead(302, { location: `http://localhost:${port}/` }).end();
                return;
            }
            response.writeHead(200, { 'x-method': request.method ?? '' });
            request.pipe(response);
        }).listen(0, '127.0.0.1');
        await once(server, 'listening');
        port = (server.address() as AddressInfo).port;
    });
    afterEach(async () => {
        server.close();
        server.closeAllConnections();
        await rig.close();
    });

    it('reach what is granted as an address, and check every redirect', async () => {
        const ctx = await contextWith({ network: ['127.0.0.1'] });
        const answer = await ctx.fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'hello' });
        expect([answer.status, answer.headers.get('x-method'), await answer.text()]).to.equal([
            200,
            'POST',
            'hello'
        ]);
        await expect(ctx.fetch(`http://127.0.0.1:${port}/away`)).to.reject(/fetch failed/);
        await expect(ctx.fetch(`http://localhost:${port}/`)).to.reject(
            /^fetch failed: The plugin \S+ lacks the capability network: localhost$/
        );
        const manual = await ctx.fetch(`http://127.0.0.1:${port}/away`, { redirect: 'manual' });
        expect(manual.status).to.equal(302);
    });

    it('do not reach a private address by a granted name, nor anything without a grant', async () => {
        const named = await contextWith({ network: ['*'] });
        const failed = (await named.fetch(`http://127.0.0.1:${port}/`).catch((error: unknown) => error)) as {
            cause: { reason: string };
        };
        expect(failed.cause.reason).to.equal('ADDRESS_FORBIDDEN');
        const [error] = (await once(named.dial({ host: 'localhost', port }), 'error')) as [FailureError];
        expect(error.reason).to.equal('CAPABILITY_MISSING');
        await generation.close('test');
        const none = await contextWith({});
        const refused = (await none.fetch('http://example.com/').catch((thrown: unknown) => thrown)) as {
            cause: FailureError;
        };
        expect(refused.cause.reason).to.equal('CAPABILITY_MISSING');
    });

    it('resolve a name to the addresses that are granted, as they dial them', async () => {
        const ctx = await contextWith({ network: ['localhost', '*.invalid', '10.1.0.0/16', '203.0.113.9'] });
        expect(await ctx.resolve('localhost')).to.include('127.0.0.1');
        expect(await ctx.resolve('10.1.2.3')).to.equal(['10.1.2.3']);
        expect(await ctx.resolve('203.0.113.9')).to.equal(['203.0.113.9']);
        // Numbers in an unusual form are the address that they stand for.
        expect((await failureOf(ctx.resolve('0x0a020304'))).reason).to.equal('CAPABILITY_MISSING');
        expect((await failureOf(ctx.resolve('10.2.0.1'))).reason).to.equal('CAPABILITY_MISSING');
        expect((await failureOf(ctx.resolve('198.51.100.1'))).reason).to.equal('CAPABILITY_MISSING');
        await expect(ctx.resolve('')).to.reject(TypeError);
        await generation.close('test');
        const named = await contextWith({ network: ['*'] });
        // A granted name never leads to a private address.
        expect((await failureOf(named.resolve('localhost'))).reason).to.equal('CAPABILITY_MISSING');
        expect((await failureOf(named.resolve('127.0.0.1'))).reason).to.equal('CAPABILITY_MISSING');
        await generation.close('test');
        const none = await contextWith({});
        expect((await failureOf(none.resolve('example.com'))).reason).to.equal('CAPABILITY_MISSING');
    });

    it('dial for drivers, with and without a target, and let go when the grant does', async () => {
        let granted: Capabilities = { network: ['localhost'] };
        const ctx = await contextWith({ network: ['localhost'] }, () => granted);
        const direct = ctx.dial({ host: 'localhost', port });
        await once(direct, 'connect');
        const bare = ctx.dial();
        bare.connect(port, '127.0.0.1');
        await once(bare, 'connect');
        const socket = ctx.dial({ path: join(rig.root, 'forbidden', 'engine.sock') });
        const [error] = (await once(socket, 'error')) as [FailureError];
        expect(error.reason).to.equal('CAPABILITY_MISSING');
        const gone = Promise.all([once(direct, 'error'), once(bare, 'error')]);
        granted = {};
        await generation.revoke();
        await gone;
        expect([direct.destroyed, bare.destroyed]).to.equal([true, true]);
    });

    it('outlive a plugin that uses TLS over a socket which was just taken away', async () => {
        const { certificate: cert, key } = selfSigned(['localhost']);
        const secured = createTlsServer({ cert, key }, (peer) => peer.on('error', () => undefined).resume());
        secured.listen(0, '127.0.0.1');
        await once(secured, 'listening');
        const { port: securePort } = secured.address() as AddressInfo;
        const uses: ((tls: TLSSocket) => unknown)[] = [
            (tls) => tls.write('more'),
            (tls) => tls.end('more'),
            (tls) => tls.destroy(),
            (tls) => queueMicrotask(() => tls.destroy())
        ];
        const ctx = await contextWith({ network: ['localhost'] });
        // Node ended with SIGSEGV at the first of these.
        for (const use of uses) {
            const socket = ctx.dial({ host: 'localhost', port: securePort });
            await once(socket, 'connect');
            const tls = connectTls({ socket, rejectUnauthorized: false }).on('error', () => undefined);
            await once(tls, 'secureConnect');
            const closed = once(socket, 'close');
            socket.destroy();
            use(tls);
            await closed;
        }
        secured.close();
        await once(secured, 'close');
    });

    it('are taken away while data comes', async () => {
        const flood = Buffer.alloc(2 ** 20);
        const source = createTcpServer((peer) => {
            const more = (): void => void (peer.destroyed || peer.write(flood, () => setImmediate(more)));
            peer.on('error', () => undefined);
            more();
        }).listen(0, '127.0.0.1');
        await once(source, 'listening');
        const ctx = await contextWith({ network: ['localhost'] });
        // Node read on, and ended with an error that nothing could catch.
        for (let turn = 0; turn < 50; turn += 1) {
            const socket = ctx.dial({ host: 'localhost', port: (source.address() as AddressInfo).port });
            socket.once('data', () => setTimeout(() => socket.destroy(), 0)).resume();
            await once(socket, 'close');
        }
        source.close();
        await once(source, 'close');
    });
});

describe('ctx.schedule', () => {
    let now = Date.parse('2026-03-29T00:59:00Z');
    beforeEach(() => start({ clock: { now: () => now } }));
    afterEach(() => rig.close());

    it('runs by the clock on the wall, skips what overlaps, and ends with its generation', async () => {
        now = Date.now();
        const ctx = await contextWith({});
        let runs = 0;
        let active = 0;
        let most = 0;
        await ctx.schedule('tick', { everySeconds: 1, overlap: 'skip' }, async ({ signal }) => {
            runs += 1;
            active += 1;
            most = Math.max(most, active);
            await wait(60_000, undefined, { signal }).catch(() => undefined);
            active -= 1;
        });
        const began = now;
        const turning = setInterval(() => {
            now = began + 5_000;
        }, 5);
        await until(() => runs === 1);
        clearInterval(turning);
        expect(most).to.equal(1);
        await generation.close('test');
        expect(active).to.equal(0);
    });

    it('finds the next time across a change of the clocks', async () => {
        now = Date.parse('2026-03-29T00:59:00Z');
        const ctx = await contextWith({});
        await using spring = await ctx.schedule(
            'spring',
            { cron: '30 2 * * *', timezone: 'Europe/Berlin' },
            () => undefined
        );
        expect((await spring.next())?.toISOString()).to.equal('2026-03-29T01:00:00.000Z');
        await expect(ctx.schedule('wrong', { cron: 'every day' }, () => undefined)).to.reject();
        await expect(
            ctx.schedule('wrong', { cron: '* * * * *', timezone: 'Europe/Atlantis' }, () => undefined)
        ).to.reject();
    });

    it('makes up once for what was missed while nothing ran', async () => {
        now = Date.parse('2026-05-01T12:00:00Z');
        const runs: [string, boolean][] = [];
        const when = { cron: '0 3 * * *', timezone: 'UTC', missed: 'run-once' } as const;
        const first = await contextWith({});
        await first.schedule('nightly', when, ({ at, missed }) => void runs.push([at.toISOString(), missed]));
        await generation.close('test');
        now = Date.parse('2026-05-04T12:00:00Z');
        const second = await contextWith({});
        await second.schedule(
            'nightly',
            when,
            ({ at, missed }) => void runs.push([at.toISOString(), missed])
        );
        await until(() => runs.length === 1);
        expect(runs).to.equal([['2026-05-02T03:00:00.000Z', true]]);
    });
});
