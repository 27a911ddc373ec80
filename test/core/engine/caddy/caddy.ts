import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    chmodSync,
    chownSync,
    existsSync,
    lstatSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readOrigin } from '../../../../core/src/engine/caddy/origin.ts';
import { engineHome, prepareHome } from '../../../../core/src/engine/files/home.ts';
import { EngineRejected, EngineUnavailable } from '../../../../core/src/engine/port.ts';
import { identify, isAlive } from '../../../../core/src/platform/process/process-identity.ts';
import { answerOf, createRealEngine, type RealEngine } from '../../../support/engine/real.ts';
import { freeze } from '../../../support/machine/freeze.ts';
import { freePort } from '../../../support/ports.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;
const asRoot = itUnless(process.getuid?.() === 0 ? undefined : 'needs root', it);

describe('CaddyDriver', { timeout: 60_000 }, () => {
    let engine: RealEngine;
    let port: number;
    const servers: Server[] = [];
    const children: ChildProcess[] = [];

    beforeEach(async () => {
        engine = createRealEngine();
        port = await freePort();
    });

    afterEach(async () => {
        for (const child of children.splice(0)) {
            child.kill('SIGKILL');
        }

        await Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done))));
        await engine.close();
    });

    const occupy = async (path: number | string): Promise<void> => {
        const server = createServer();
        servers.push(server);
        await new Promise<void>((done) =>
            typeof path === 'number' ? server.listen(path, '127.0.0.1', done) : server.listen(path, done)
        );
    };

    const panel = async (
        dataDir: string,
        mark: string,
        wrapper: readonly string[] = []
    ): Promise<{ readonly child: ChildProcess; readonly pid: number; readonly socket: string }> => {
        const [file = '', ...args] = [
            ...wrapper,
            process.execPath,
            '--conditions=portico-source',
            join(import.meta.dirname, '../../../fixtures/engine/panel.ts'),
            dataDir,
            String(port),
            mark
        ];
        const child = spawn(file, args, {
            stdio: ['ignore', 'pipe', 'inherit'],
            cwd: join(import.meta.dirname, '../../../..')
        });
        children.push(child);
        const [chunk] = (await once(child.stdout, 'data', { signal: AbortSignal.timeout(20_000) })) as [
            Buffer
        ];
        return { child, ...(JSON.parse(chunk.toString()) as { pid: number; socket: string }) };
    };

    it('takes the engine of a panel that was killed, without a break in service', async () => {
        const { child, pid } = await panel(engine.dataDir, 'theirs');
        child.kill('SIGKILL');
        await once(child, 'exit');
        expect(await answerOf(port)).to.equal('theirs');

        expect(await engine.driver.start(engine.answering('ours', port))).to.be.false();
        expect(engine.driver.process()).to.include({ state: 'running', pid });
        expect(await answerOf(port)).to.equal('theirs');
        expect((await engine.driver.config())?.['apps']).to.exist();

        process.kill(pid, 'SIGKILL');
        await until(
            () => engine.driver.process().state === 'failing',
            'death of a process that is not a child is seen'
        );
        await until(() => engine.driver.process().state === 'running', 'it runs again');
        expect(await answerOf(port)).to.equal('theirs');
        expect(engine.driver.process().pid).to.not.equal(pid);
    });

    it('starts with what was last loaded when panel and engine are gone, as after a reboot', async () => {
        const { child, pid } = await panel(engine.dataDir, 'before');
        child.kill('SIGKILL');
        await once(child, 'exit');
        process.kill(pid, 'SIGKILL');
        await until(() => identify(pid) === null, 'engine is gone');
        rmSync(engine.folders.runtime, { recursive: true });

        expect(await engine.driver.start(engine.answering('rendered', port))).to.be.true();
        expect(await answerOf(port)).to.equal('before');
    });

    it('starts with the base when what was last loaded was cut on the disk', async () => {
        prepareHome(engine.folders);
        writeFileSync(engine.folders.lastFile, '{"admin":{"li');
        await engine.driver.start(engine.answering('base', port));
        expect(await answerOf(port)).to.equal('base');
    });

    it('never runs two engines for one folder, however many drivers start one', async () => {
        const drivers = [engine.driver, engine.another(), engine.another()];
        const running = (): string[] =>
            execFileSync('ps', ['-eo', 'pid,stat,args'], { encoding: 'utf8' })
                .split('\n')
                .filter(
                    (line) =>
                        line.includes(`--config ${engine.folders.startFile}`) && !/^\s*\d+ Z|flock/.test(line)
                );
        const agree = (not: number | null): number | false => {
            const [pid, ...others] = new Set(
                drivers.map((driver) => (driver.process().state === 'running' ? driver.process().pid : null))
            );
            return typeof pid === 'number' && others.length === 0 && pid !== not && pid;
        };

        // Those who come late may find the port taken for a moment, by the look of another whether it is free; they try again.
        await Promise.allSettled(drivers.map((driver) => driver.start(engine.answering('one', port))));
        const pid = await until(() => agree(null), 'all have the same engine');
        expect(running()).to.have.length(1);
        expect(await answerOf(port)).to.equal('one');

        process.kill(pid, 'SIGKILL');
        await until(() => agree(pid), 'all have the next one');
        expect(running()).to.have.length(1);
        expect(await answerOf(port)).to.equal('one');
    });

    it('refuses a load that wants a busy port, names its holder, and touches nothing', async () => {
        const busy = await freePort();
        const second = await freePort();
        await occupy(busy);
        await engine.driver.start(engine.answering('old', port));
        const { pid } = engine.driver.process();
        for (const listen of [
            [port, busy],
            [busy, port],
            [port, second, busy]
        ]) {
            const error = await expect(engine.driver.load(engine.answering('new', ...listen))).to.reject(
                EngineRejected
            );
            expect(error.message).to.include(`listening on 127.0.0.1:${busy}: the address is in use by `);
            expect(error.message).to.include(`(process ${process.pid})`);
        }

        expect(engine.driver.process()).to.include({ state: 'running', pid });
        expect(await Promise.all(Array.from({ length: 20 }, () => answerOf(port)))).to.equal(
            Array<string>(20).fill('old')
        );
        await expect(answerOf(second)).to.reject();

        await engine.driver.load(engine.answering('new', port, second));
        expect([await answerOf(port), await answerOf(second)]).to.equal(['new', 'new']);
    });

    it('has the old configuration alone on every listener after a load that failed half-way', async () => {
        const second = await freePort();
        const third = await freePort();
        await engine.driver.start(engine.answering('old', port, second));
        const { pid } = engine.driver.process();
        // Not an address that can be probed, so that the engine itself fails at it, with other listeners opened before.
        const error = await expect(
            engine.driver.load(engine.answering('new', port, second, third, 'unix//proc/none/x.sock'))
        ).to.reject(EngineRejected);
        expect(error.message).to.include('/proc/none/x.sock');
        expect(engine.driver.process().state).to.equal('running');
        expect(engine.driver.process().pid).to.not.equal(pid);
        const answers = await Promise.all(
            Array.from({ length: 40 }, (_, index) => answerOf(index % 2 === 0 ? port : second))
        );
        expect(new Set(answers)).to.equal(new Set(['old']));
        await expect(answerOf(third)).to.reject();
        expect(await engine.driver.config()).to.equal(engine.answering('old', port, second));
    });

    it('says why when its port is busy at the start, and recovers when the port is free', async () => {
        await occupy(port);
        const error = await expect(engine.driver.start(engine.answering('late', port))).to.reject(
            EngineUnavailable
        );
        expect(error.message).to.include(`127.0.0.1:${port}: the address is in use`);
        expect(engine.driver.process().state).to.equal('failing');
        await new Promise((done) => servers.pop()?.close(done));
        await until(() => engine.driver.process().state === 'running', 'recovery');
        expect(await answerOf(port)).to.equal('late');
    });

    it('takes a good load after a start at which every configuration was refused', async () => {
        await occupy(port);
        await expect(engine.driver.start(engine.answering('never', port))).to.reject(EngineUnavailable);
        const other = await freePort();
        await engine.driver.load(engine.answering('mended', other));
        expect(engine.driver.process().state).to.equal('running');
        expect(await answerOf(other)).to.equal('mended');
    });

    it('takes a load at once while it waits to restart a dead engine', async () => {
        const slow = engine.another({ timing: { tickMs: 50, backoffMs: 60_000, backoffCapMs: 60_000 } });
        await slow.start(engine.answering('old', port));
        process.kill(slow.process().pid ?? 0, 'SIGKILL');
        await until(() => slow.process().state === 'failing', 'death is seen');
        await slow.load(engine.answering('new', port));
        expect(slow.process().state).to.equal('running');
        expect(await answerOf(port)).to.equal('new');
    });

    it('comes back with what it acknowledged last, or what was on its way, however often it is killed during loads', async () => {
        // Without the wait that grows with each failure.
        const driver = engine.another({ timing: { tickMs: 10, backoffMs: 20, backoffCapMs: 50 } });
        await driver.start(engine.answering('0', port));
        let acknowledged = 0;
        for (let mark = 1; mark <= 40; mark += 1) {
            const { pid } = driver.process();
            if (mark % 4 === 0 && pid !== null) {
                setTimeout(() => process.kill(pid, 'SIGKILL'), mark % 8);
            }

            await driver.load(engine.answering(String(mark), port)).then(
                () => {
                    acknowledged = mark;
                },
                (error: unknown) => {
                    expect(error).to.be.instanceOf(EngineUnavailable);
                }
            );
            await until(() => driver.process().state === 'running', 'it runs');
            const served = Number(await until(() => answerOf(port), 'it serves'));
            expect([acknowledged, mark]).to.include(served);
        }

        expect(acknowledged).to.be.above(20);
    });

    it('replaces an engine that no longer answers', async () => {
        const quick = engine.another({
            timing: { tickMs: 50, pingEveryMs: 100, pingMs: 300, pingsMissed: 2, backoffMs: 100 }
        });
        await quick.start(engine.answering('same', port));
        const { pid } = quick.process();
        await freeze(pid);
        await until(
            () => quick.process().state === 'running' && ![null, pid].includes(quick.process().pid),
            'another process runs'
        );
        expect(await answerOf(port)).to.equal('same');
        expect(identify(pid ?? 0)).to.be.null();
        expect(quick.process().message).to.equal('the engine does not answer');
    });

    it('gives up a load that hangs, and serves the configuration before it again', async () => {
        const quick = engine.another({
            timing: { tickMs: 50, loadMs: 500, pingMs: 300, backoffMs: 100, pingEveryMs: 60_000 }
        });
        await quick.start(engine.answering('old', port));
        const { pid } = quick.process();
        await freeze(pid);
        await expect(quick.load(engine.answering('new', port))).to.reject(EngineUnavailable);
        expect(quick.process().state).to.equal('failing');
        await until(() => quick.process().state === 'running', 'recovery');
        expect(await answerOf(port)).to.equal('old');
        expect(quick.process().pid).to.not.equal(pid);
    });

    it('stops an engine that hangs in a load without waiting for it', async () => {
        await engine.driver.start(engine.answering('old', port));
        const identity = identify(engine.driver.process().pid ?? 0);
        await freeze(identity?.pid ?? null);
        const loading = expect(engine.driver.load(engine.answering('new', port))).to.reject(
            EngineUnavailable
        );
        expect(await engine.driver.stop()).to.be.true();
        await loading;
        expect(identity !== null && isAlive(identity)).to.be.false();
        expect(engine.driver.process().state).to.equal('stopped');
    });

    it('answers to its admin API under a name alone that is random for each start, and that no file of a guessable path tells', async () => {
        const ask = (host: string): Promise<number> =>
            new Promise((done, failed) => {
                request(
                    { socketPath: engine.folders.adminSocket, path: '/config/', headers: { host } },
                    (response) => {
                        response.resume();
                        done(response.statusCode ?? 0);
                    }
                )
                    .on('error', failed)
                    .end();
            });
        const names: string[] = [];
        for (const start of ['first', 'second']) {
            await engine.driver.start(engine.answering('base', port));
            const name = readOrigin(engine.folders);
            expect(names, start).to.not.include(name);
            names.push(name);
            const answers = await Promise.all(['caddy', 'localhost', '', ...names].map(ask));
            expect(answers, start).to.equal([...Array<number>(names.length + 2).fill(403), 200]);
            expect(existsSync(engine.folders.startFile), start).to.be.false();
            expect(readdirSync(dirname(engine.folders.startFile)).join(' ')).to.not.include('start.json');
            expect(JSON.stringify(await engine.driver.config())).to.not.include(name);
            await engine.driver.stop();
        }
        let log = '';
        for await (const line of engine.driver.logs({
            lines: 1000,
            follow: false,
            signal: new AbortController().signal
        })) {
            log += line;
        }
        expect(log).to.include('admin endpoint started').and.include('received request');
        for (const name of names) {
            expect(log).to.not.include(name);
        }
    });

    it('refuses a configuration that would lock the panel out', async () => {
        await engine.driver.start(engine.answering('old', port));
        for (const admin of [
            undefined,
            { disabled: true },
            { listen: 'localhost:2019' },
            { ...(engine.answering('x')['admin'] as object), origins: ['*'] },
            { ...(engine.answering('x')['admin'] as object), disabled: true }
        ]) {
            const config = { ...engine.answering('new', port), admin };
            await expect(engine.driver.load(config)).to.reject(
                EngineRejected,
                "the configuration does not keep the panel's admin socket"
            );
            await expect(engine.driver.validate(config)).to.reject(EngineRejected);
        }

        expect(await answerOf(port)).to.equal('old');
    });

    it('reports a missing binary, and starts as soon as there is one', async () => {
        const binary = join(engine.dataDir, '..', 'caddy');
        const driver = engine.another({ binary });
        expect(driver.process()).to.equal({
            state: 'missing',
            version: null,
            pid: null,
            startedAt: null,
            message: `there is no executable Caddy at ${binary} (PORTICO_CADDY)`
        });
        await expect(driver.start(engine.answering('base', port))).to.reject(
            EngineUnavailable,
            `there is no executable Caddy at ${binary} (PORTICO_CADDY)`
        );
        expect(driver.process().state).to.equal('missing');
        await expect(driver.load(engine.answering('new', port))).to.reject(EngineUnavailable);
        await expect(driver.validate(engine.answering('new', port))).to.reject(EngineUnavailable);
        expect(await driver.config()).to.be.null();
        expect(await driver.stop()).to.be.false();

        symlinkSync(execFileSync('/bin/sh', ['-c', 'command -v caddy'], { encoding: 'utf8' }).trim(), binary);
        chmodSync(join(engine.dataDir, '..'), 0o711);
        expect(await driver.start(engine.answering('base', port))).to.be.true();
        expect(driver.process().version).to.include({ major: 2 });
        expect(await answerOf(port)).to.equal('base');
    });

    it('tells the last words of a binary that is no engine', async () => {
        const binary = join(engine.dataDir, '..', 'fake');
        writeFileSync(binary, '#!/bin/sh\necho first >&2\necho "I am no proxy" >&2\nexit 3\n', {
            mode: 0o755
        });
        chmodSync(join(engine.dataDir, '..'), 0o711);
        const driver = engine.another({ binary });
        const error = await expect(driver.start(engine.answering('base', port))).to.reject(EngineUnavailable);
        expect(error.message).to.equal('the engine ended at its start (code 3): I am no proxy');
        expect(driver.process().state).to.equal('failing');
    });

    it("does not talk to a socket that is not the engine's, nor remove it", async () => {
        prepareHome(engine.folders);
        await occupy(engine.folders.adminSocket);
        if (!engine.folders.owner.switched) {
            return;
        }

        const error = await expect(engine.driver.start(engine.answering('base', port))).to.reject(
            EngineUnavailable
        );
        expect(error.message).to.include('is not a socket of the user caddy');
        expect(lstatSync(engine.folders.adminSocket).uid).to.equal(0);
    });

    it('starts over the socket that a killed engine left behind', async () => {
        const { child, pid } = await panel(engine.dataDir, 'left');
        child.kill('SIGKILL');
        process.kill(pid, 'SIGKILL');
        await until(() => identify(pid) === null, 'engine is gone');
        expect(existsSync(engine.folders.adminSocket)).to.be.true();
        expect(await engine.driver.start(engine.answering('base', port))).to.be.true();
    });

    it('believes no process id on disk', async () => {
        const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
        children.push(stranger);
        prepareHome(engine.folders);
        writeFileSync(engine.folders.pidFile, `${stranger.pid}\n`);
        expect(await engine.driver.stop()).to.be.false();
        await engine.driver.start(engine.answering('base', port));
        expect(readFileSync(engine.folders.pidFile, 'utf8')).to.equal(`${engine.driver.process().pid}\n`);
        await engine.driver.stop();
        expect(identify(stranger.pid ?? 0)).to.not.be.null();
    });

    it('works below a very long data folder', async () => {
        const deep = createRealEngine(
            {},
            Array.from({ length: 8 }, (_, index) => `${'x'.repeat(40)}${index}`).join('/')
        );
        try {
            expect(deep.dataDir.length).to.be.above(300);
            await deep.driver.start(deep.answering('deep', port));
            expect(await answerOf(port)).to.equal('deep');
        } finally {
            await deep.close();
        }
    });

    it("follows its log through the engine's own rotation", async () => {
        await engine.driver.start(engine.answering('base', port));
        const ending = new AbortController();
        let seen = 0;
        const reading = (async () => {
            for await (const line of engine.driver.logs({ lines: 0, follow: true, signal: ending.signal })) {
                seen += line.includes('"logger":"admin.api"') ? 1 : 0;
            }
        })();
        const long = 'y'.repeat(100);
        for (let index = 0; index < 30; index += 1) {
            await engine.driver.load(engine.answering(`${long}${index}`, port));
        }

        await until(() => seen >= 30, 'every load is in the log');
        ending.abort();
        await reading;
        expect(lstatSync(engine.folders.logFile).mode & 0o077).to.equal(0);
    });

    asRoot(
        "runs as the package's user, with the right to bind low ports and none to read the data folder",
        async () => {
            await engine.driver.start(engine.answering('base', port));
            const status = readFileSync(`/proc/${engine.driver.process().pid}/status`, 'utf8');
            const { uid, gid } = engine.folders.owner;
            expect(uid).to.not.equal(0);
            expect(status).to.match(new RegExp(`^Uid:\\s+${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, 'm'));
            expect(status).to.match(new RegExp(`^Gid:\\s+${gid}\\s+${gid}\\s+${gid}\\s+${gid}$`, 'm'));
            expect(status).to.match(/^Groups:\s*$/m);
            for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb']) {
                expect(status).to.match(new RegExp(`^Cap${set}:\\s+0000000000000400$`, 'm'));
            }

            expect(status).to.match(/^NoNewPrivs:\s+1$/m);
            const environment = readFileSync(`/proc/${engine.driver.process().pid}/environ`, 'utf8')
                .split('\0')
                .map((entry) => entry.split('=')[0])
                .filter((name) => name !== '');
            expect(
                environment.filter(
                    (name) =>
                        ![
                            'GOGC',
                            'GOMEMLIMIT',
                            'HOME',
                            'PATH',
                            'PWD',
                            'SSL_CERT_DIR',
                            'SSL_CERT_FILE',
                            'XDG_CONFIG_HOME',
                            'XDG_DATA_HOME'
                        ].includes(name ?? '')
                )
            ).to.equal([]);

            await engine.driver.load(engine.answering('low', port, '127.93.41.7:80'));
            expect(
                await (await fetch('http://127.93.41.7/', { signal: AbortSignal.timeout(5000) })).text()
            ).to.equal('low');

            const as = (path: string): string =>
                execFileSync(
                    'setpriv',
                    [
                        `--reuid=${uid}`,
                        `--regid=${gid}`,
                        '--clear-groups',
                        '/bin/sh',
                        '-c',
                        'ls "$1" 2>&1 || true',
                        'x',
                        path
                    ],
                    { encoding: 'utf8' }
                );
            expect(as(engine.dataDir)).to.include('Permission denied');
            expect(as(engine.folders.lastFile)).to.include('Permission denied');
            expect(as(engine.folders.storage)).to.not.include('denied');

            const nobody = (path: string): string =>
                execFileSync(
                    'setpriv',
                    [
                        '--reuid=65534',
                        '--regid=65534',
                        '--clear-groups',
                        '/bin/sh',
                        '-c',
                        'ls "$1" 2>&1 || true',
                        'x',
                        path
                    ],
                    { encoding: 'utf8' }
                );
            for (const path of [
                engine.folders.adminSocket,
                engine.folders.table,
                engine.folders.certificates,
                engine.folders.storage,
                engine.folders.logFile,
                engine.folders.startFile
            ]) {
                expect(nobody(path)).to.include('Permission denied');
            }
        }
    );

    asRoot(
        "runs as the panel's own user below the data folder when the panel is not root, with the socket elsewhere when the path is long",
        async () => {
            for (const below of ['', `${'x'.repeat(60)}/${'y'.repeat(60)}`]) {
                const top = mkdtempSync(join(tmpdir(), 'portico-engine-'));
                const dataDir = join(top, below, 'data');
                mkdirSync(dataDir, { recursive: true });
                for (let path = dataDir; path.length >= top.length; path = join(path, '..')) {
                    chmodSync(path, path === dataDir ? 0o700 : 0o711);
                    chownSync(path, 65_534, 65_534);
                }

                let socket = '';
                try {
                    const run = await panel(dataDir, 'nobody', [
                        'setpriv',
                        '--reuid=65534',
                        '--regid=65534',
                        '--clear-groups'
                    ]);
                    socket = run.socket;
                    expect(await answerOf(port)).to.equal('nobody');
                    expect(readFileSync(`/proc/${run.pid}/status`, 'utf8')).to.match(
                        /^Uid:\s+65534\s+65534\s/m
                    );
                    expect(socket.startsWith(dataDir)).to.equal(below === '');
                    expect(lstatSync(join(socket, '..')).mode & 0o7777).to.equal(0o700);
                    expect(lstatSync(join(dataDir, 'engine')).mode & 0o7777).to.equal(0o700);
                    run.child.kill('SIGTERM');
                    await once(run.child, 'exit');
                    expect(identify(run.pid)).to.be.null();
                } finally {
                    rmSync(top, { recursive: true, force: true });
                    if (socket !== '' && below !== '') {
                        rmSync(join(socket, '..'), { recursive: true, force: true });
                    }
                }
            }
        }
    );

    asRoot('changes the user of a running engine and of what it stored', async () => {
        await engine.driver.start(engine.answering('as caddy', port));
        const former = identify(engine.driver.process().pid ?? 0);
        await engine.driver.close();
        const next = engine.another({ user: 'nobody' });
        const folders = engineHome(engine.dataDir, 'nobody');
        writeFileSync(join(folders.storage, 'kept'), 'x');
        chownSync(join(folders.storage, 'kept'), engine.folders.owner.uid, engine.folders.owner.gid);
        try {
            expect(await next.start(engine.answering('base', port))).to.be.true();
            expect(former !== null && isAlive(former)).to.be.false();
            expect(await answerOf(port)).to.equal('as caddy');
            expect(lstatSync(join(folders.storage, 'kept')).uid).to.equal(folders.owner.uid);
        } finally {
            await next.stop();
        }
    });

    it('says which user does not exist', async () => {
        const driver = engine.another({ user: 'no-such-user' });
        const error = await expect(driver.start(engine.answering('base', port))).to.reject(EngineUnavailable);
        expect(error.message).to.include('no user no-such-user');
        await driver.close();
    });
});
