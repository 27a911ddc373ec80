import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import {
    type Actor,
    type Call,
    type Context,
    contract,
    definePlugin,
    errors,
    joi,
    type PluginDefinition
} from '@portico/sdk';
import {
    createTestHost,
    LeakError,
    PluginFailure,
    type TestHost,
    type TestHostOptions
} from '@portico/testing';

import { root } from '../../../support/docs/markdown.ts';
import { exampleHost } from '../../../support/plugins/example-host.ts';

export const lab = Lab.script();
const { describe, it } = lab;

type Setup = (ctx: Context) => void;

/** A plugin that registers what a test needs. */
const plugin = (setup: Setup): PluginDefinition => definePlugin({ setup });
/** A plugin whose one route does something and answers what came of it. */
const doing = (work: (ctx: Context, actor: Actor) => unknown): PluginDefinition =>
    plugin((ctx) => {
        ctx.route({
            method: 'POST',
            path: '/do',
            access: 'write',
            handler: async ({ actor }) => {
                const value = (await work(ctx, actor)) ?? null;
                return typeof value === 'object' ? value : { value };
            }
        });
    });

async function hosting(
    definition: PluginDefinition,
    options: TestHostOptions,
    work: (host: TestHost) => Promise<void>
): Promise<void> {
    const host = await createTestHost(definition, { quiet: true, ...options });
    try {
        await work(host);
    } finally {
        await host.close();
    }
}

/** What the route of `doing` answers to an admin. */
const done = async (host: TestHost): Promise<unknown> => {
    const { code, data, reason, message } = await host.as('admin').post('/do', {});
    return code === 0 ? ((data as { value?: unknown } | null)?.value ?? data) : { code, reason, message };
};

const failed = async (work: Promise<unknown>): Promise<Error & { readonly code?: unknown }> =>
    work.then(
        () => {
            throw new Error('It did not fail');
        },
        (error: unknown) => error as Error
    );

describe('createTestHost', () => {
    it('says at which stage and why a plugin does not run, and leaves nothing', async () => {
        const cases: readonly (readonly [PluginDefinition, TestHostOptions, string, string])[] = [
            [
                definePlugin({
                    settings: joi.object({ token: joi.secret().required() }),
                    setup: () => undefined
                }),
                {},
                'SETTINGS_REQUIRED',
                'token is required'
            ],
            [
                definePlugin({ settings: joi.object({ n: joi.number() }), setup: () => undefined }),
                { settings: { n: 'x' } },
                'SETTINGS_INVALID',
                'n must be a number'
            ],
            [
                definePlugin({
                    migrations: [{ name: '1', up: ['create nonsense'] }],
                    setup: () => undefined
                }),
                {},
                'MIGRATION_FAILED',
                'nonsense'
            ],
            [
                plugin(() => {
                    throw new Error('not today');
                }),
                {},
                'SETUP_FAILED',
                'not today'
            ],
            [
                definePlugin({ setup: () => new Promise<void>(() => undefined) }),
                { timing: { setupMs: 20 } },
                'SETUP_TIMEOUT',
                '0.02 s'
            ],
            [
                plugin((ctx) =>
                    ctx.onStart(() => {
                        throw new Error('no engine');
                    })
                ),
                {},
                'START_FAILED',
                'no engine'
            ],
            [
                plugin((ctx) => ctx.route({ method: 'GET', path: '/x', access: 'fly', handler: () => 1 })),
                {},
                'REGISTRATION_INVALID',
                'fly'
            ],
            [
                plugin((ctx) =>
                    ctx.route({
                        method: 'GET',
                        path: '/x',
                        access: { public: 'every caller may know it' },
                        handler: () => 1
                    })
                ),
                {},
                'REGISTRATION_INVALID',
                'every caller may know it'
            ],
            [
                plugin((ctx) => ctx.hooks.tap('host.guard', () => undefined)),
                {},
                'REGISTRATION_INVALID',
                'taps: host.guard'
            ],
            [
                definePlugin({
                    requires: { math: contract<{ add(input: object, call: Call): Promise<number> }>() },
                    setup: () => undefined
                }),
                { manifest: { requires: {} }, partners: { math: {} } },
                'REGISTRATION_INVALID',
                'names math in requires'
            ]
        ];
        for (const [definition, options, code, message] of cases) {
            const error = await failed(createTestHost(definition, { quiet: true, ...options }));
            expect(error, message).to.be.instanceof(PluginFailure);
            expect(error.code, error.message).to.equal(code);
            expect(error.message).to.include(message);
        }
    });

    it('shows a test what setup threw, whole', async () => {
        const thrown = new Error('not today');
        const error = await failed(
            createTestHost(
                plugin(() => {
                    throw thrown;
                })
            )
        );
        expect(error.cause).to.shallow.equal(thrown);
    });

    it('asks for a fake of each plugin that is required', async () => {
        const definition = definePlugin({
            requires: { math: contract<{ add(input: object, call: Call): Promise<number> }>() },
            setup: () => undefined
        });
        expect((await failed(createTestHost(definition))).message).to.equal(
            'test requires math: give createTestHost a fake of each, as partners: { math: { … } }'
        );
    });

    it('fails what is not plain where it would fail between threads', async () => {
        const definition = definePlugin({
            setup: () => ({
                give: async (_input: object, _call: Call): Promise<{ readonly n: number }> => ({
                    n: (() => 1) as never // wrong on purpose
                })
            })
        });
        await hosting(definition, {}, async (host) => {
            const remote = host.contract<{ give(input: object, call: Call): Promise<unknown> }>();
            expect(await failed(remote.give({}))).to.include({ code: 50000 });
            expect(host.log.map(({ fields }) => (fields['error'] as Error).message)).to.equal([
                'the answer of test.give.n is a function, which cannot cross the boundary of a plugin'
            ]);
        });
    });

    it('holds answers against what the route declares', async () => {
        const definition = plugin((ctx) =>
            ctx.route({
                method: 'GET',
                path: '/n',
                access: 'read',
                returns: joi.object({ n: joi.number().required() }),
                handler: () => ({ n: 'x' as never }) // wrong on purpose
            })
        );
        await hosting(definition, {}, async (host) => {
            expect((await host.as('viewer').get('/n')).code).to.equal(50000);
            expect(host.log[0]?.fields['error']).to.include({
                message: 'get.n answers what its schema does not say: "n" must be a number'
            });
        });
    });

    it('gives roles what the manifest gives them, and viewers nothing that changes', async () => {
        const definition = plugin((ctx) => {
            ctx.route({ method: 'GET', path: '/secret', access: 'content', handler: () => null });
            ctx.route({ method: 'POST', path: '/open', access: 'read', handler: () => null });
            ctx.route({
                method: 'DELETE',
                path: '/fresh',
                access: 'write',
                stepUp: true,
                handler: () => null
            });
        });
        await hosting(
            definition,
            { manifest: { permissions: { content: { title: 'See it', roles: ['operator'] } } } },
            async (host) => {
                const codes = await Promise.all(
                    (['admin', 'operator', 'viewer', 'anonymous'] as const).map(
                        async (who) => (await host.as(who).get('/secret')).code
                    )
                );
                expect(codes).to.equal([0, 0, 40300, 40100]);
                expect((await host.as('viewer').post('/open', {})).message).to.equal(
                    'The role viewer only reads'
                );
                expect(
                    (await host.as({ permissions: ['write'], fresh: false }).delete('/fresh')).code
                ).to.equal(40301);
                const client = host.as('operator');
                client.end();
                expect((await client.get('/secret')).code).to.equal(40103);
            }
        );
    });

    it('names what a plugin leaves behind, and where it came from', async () => {
        const host = await createTestHost(
            plugin((ctx) => {
                ctx.onStart(() => {
                    setInterval(() => undefined, 1000);
                    process.on('SIGUSR2', () => undefined);
                });
                ctx.onStop(() => {
                    throw new Error('too tired');
                });
            }),
            { quiet: true }
        );
        const error = (await failed(host.close())) as LeakError;
        expect(error).to.be.instanceof(LeakError);
        expect(error.leaks).to.have.length(3);
        expect(error.leaks[0]).to.equal('onStop failed: too tired');
        expect(error.leaks[1]).to.match(/^timer panel\/host\.ts:\d+: /);
        expect(error.leaks[2]).to.match(/^listener for SIGUSR2 of the process panel\/host\.ts:\d+: /);
        expect(process.listenerCount('SIGUSR2')).to.equal(0);
    });

    it('keeps data, settings and what was missed over a restart', async () => {
        const runs: boolean[] = [];
        const definition = definePlugin({
            settings: joi.object({ greeting: joi.string().default('Hello'), token: joi.secret() }),
            migrations: [{ name: '1', up: ['create table t (n integer)'] }],
            setup(ctx) {
                ctx.onStart(async () => {
                    await ctx.schedule(
                        'nightly',
                        { cron: '0 3 * * *', timezone: 'UTC', missed: 'run-once' },
                        ({ missed }) => void runs.push(missed)
                    );
                });
                ctx.route({
                    method: 'POST',
                    path: '/do',
                    access: 'write',
                    async handler() {
                        await ctx.db.write((em) => em.execute('insert into t values (1)'));
                        return {
                            greeting: ctx.settings.greeting,
                            token: ctx.settings.token,
                            rows: await ctx.db.read((em) => em.execute('select count(*) as n from t'))
                        };
                    }
                });
            }
        });
        await hosting(
            definition,
            { settings: { token: 'abc' }, now: Date.UTC(2026, 0, 1, 12) },
            async (host) => {
                await host.setSettings({ greeting: 'Hi' });
                expect(host.settings).to.equal({ token: { set: true }, greeting: 'Hi' });
                expect(await done(host)).to.equal({ greeting: 'Hi', token: 'abc', rows: [{ n: 1 }] });
                await host.restart({ days: 3 });
                await host.clock.advance({ seconds: 1 });
                expect(runs).to.equal([true]);
                expect(await host.schedules.next('nightly')).to.equal(new Date(Date.UTC(2026, 0, 5, 3)));
                expect(await done(host)).to.equal({ greeting: 'Hi', token: 'abc', rows: [{ n: 2 }] });
                expect((await failed(host.setSettings({ greeting: 1 }))).code).to.equal(40001);
                expect(host.settings).to.equal({ token: { set: true }, greeting: 'Hi' });
                await host.stop();
                expect((await host.as('admin').post('/do', {})).code).to.equal(40411);
                await host.start();
            }
        );
    });

    it('runs what is scheduled at its time, in order', async () => {
        const at: string[] = [];
        const definition = plugin((ctx) =>
            ctx.onStart(async () => {
                await ctx.schedule(
                    'often',
                    { everySeconds: 600 },
                    (run) => void at.push(`often ${run.at.toISOString().slice(11, 16)}`)
                );
                await ctx.schedule(
                    'once',
                    { cron: '30 9 * * 1-5', timezone: 'Europe/Berlin' },
                    (run) => void at.push(`once ${run.at.toISOString().slice(11, 16)}`)
                );
            })
        );
        await hosting(definition, { now: Date.UTC(2026, 6, 6, 7, 5) }, async (host) => {
            await host.clock.advance({ minutes: 30 });
            expect(at).to.equal(['often 07:15', 'often 07:25', 'once 07:30', 'often 07:35']);
            await host.schedules.run('once');
            expect(at).to.have.length(5);
            expect((await failed(host.schedules.run('never'))).message).to.equal(
                'Nothing is scheduled as never; there is often, once'
            );
        });
    });

    it('runs programs as the test says, and refuses the others', async () => {
        const definition = doing(async (ctx) => {
            const { stdout, code } = await ctx.exec('git', ['log'], { stdin: 'in' });
            return { stdout, code };
        });
        await hosting(definition, { manifest: { capabilities: { exec: ['git', 'cat'] } } }, async (host) => {
            expect(await done(host)).to.include({ code: 50000 });
            expect((host.log[0]?.fields['error'] as Error).message).to.include("programs.answer('git', …)");
            host.programs.answer('git', { code: 3, stdout: 'abc' });
            expect(await done(host)).to.equal({ stdout: 'abc', code: 3 });
            host.programs.answer(
                'git',
                async ({ stdin, args }) =>
                    `${args.join()} ${(await Array.fromAsync(stdin)).map((chunk) => new TextDecoder().decode(chunk)).join('')}`
            );
            expect(await done(host)).to.equal({ stdout: 'log in', code: 0 });
            expect(host.programs.calls).to.have.length(2);
            host.programs.missing('git');
            expect(await done(host)).to.include({ reason: 'TOOL_MISSING' });
            await host.refuse('exec', 'git');
            expect(await done(host)).to.include({ reason: 'CAPABILITY_MISSING' });
        });
    });

    it("runs the machine's own programs where the test asks for it", async () => {
        const definition = doing(async (ctx) => {
            await using child = await ctx.spawn('cat', []);
            const writer = child.stdin.getWriter();
            await writer.write(new TextEncoder().encode('meow'));
            await writer.close();
            return (await Array.fromAsync(child.stdout))
                .map((chunk) => new TextDecoder().decode(chunk))
                .join('');
        });
        await hosting(definition, { manifest: { capabilities: { exec: ['cat'] } } }, async (host) => {
            host.programs.real('cat');
            expect(await done(host)).to.equal('meow');
        });
    });

    it('kills what a plugin runs when it stops', async () => {
        let killed = false;
        const definition = plugin((ctx) =>
            ctx.onStart(async () => {
                await ctx.spawn('tail', ['-f']);
            })
        );
        expect(
            await failed(
                createTestHost(definition, { quiet: true, manifest: { capabilities: { exec: ['tail'] } } })
            )
        ).to.include({ code: 'START_FAILED' });
        await hosting(
            plugin((ctx) =>
                ctx.route({
                    method: 'POST',
                    path: '/do',
                    access: 'write',
                    handler: async () => ({ pid: (await ctx.spawn('tail', ['-f'])).pid })
                })
            ),
            { manifest: { capabilities: { exec: ['tail'] } } },
            async (one) => {
                one.programs.answer(
                    'tail',
                    ({ signal }) =>
                        new Promise((resolve) =>
                            signal.addEventListener('abort', () => {
                                killed = true;
                                resolve('');
                            })
                        )
                );
                await done(one);
                const { released } = await one.stop();
                expect(released.map(({ kind }) => kind)).to.include('process');
            }
        );
        expect(killed).to.equal(true);
    });

    it('answers for the outside, and lets nothing else be reached', async () => {
        const definition = doing(async (ctx) => {
            const answer = await ctx.fetch('https://api.example/things', { method: 'POST', body: 'x' });
            return { status: answer.status, json: (await answer.json()) as unknown };
        });
        await hosting(
            definition,
            { manifest: { capabilities: { network: ['api.example'] } } },
            async (host) => {
                host.network.answer('api.example', async (request) => ({
                    method: request.method,
                    body: await request.text()
                }));
                expect(await done(host)).to.equal({ status: 200, json: { method: 'POST', body: 'x' } });
                const { reached } = host.faults.hang('fetch', { times: 1 });
                const waiting = done(host);
                await reached;
                host.faults.clear('fetch');
                expect(await waiting).to.include({ code: 50000 });
                host.network.answer('api.example', () => {
                    throw new Error('connection reset');
                });
                expect(await done(host)).to.include({ code: 50000 });
                await host.refuse('network');
                expect(await done(host)).to.include({
                    code: 50305,
                    message: 'The plugin test lacks the capability network: api.example'
                });
                expect((host.log.at(-1)?.fields['error'] as Error).message).to.match(
                    /^fetch failed: The plugin \S+ lacks the capability network: api\.example$/
                );
            }
        );
    });

    it("leads a dialled socket to one of the test's", async () => {
        const server = createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1');
        await once(server, 'listening');
        const definition = doing(async (ctx) => {
            const socket = ctx.dial({ host: 'db.example', port: 5432 });
            return new Promise((resolve) => {
                socket.on('data', (data) => resolve(String(data)));
                socket.on('error', (error) => resolve(error.message));
            });
        });
        await hosting(
            definition,
            { manifest: { capabilities: { network: ['db.example'] } } },
            async (host) => {
                host.network.lead('db.example:5432', { port: (server.address() as AddressInfo).port });
                expect(await done(host)).to.equal('hello');
                await host.refuse('network');
                expect(await done(host)).to.equal('The plugin test lacks the capability network: db.example');
            }
        );
        server.close();
        await once(server, 'close');
    });

    it('resolves a name to what the test says, as far as the grants go', async () => {
        const definition = doing(async (ctx) => ctx.resolve('git.example'));
        const capabilities = { network: ['git.example', '10.1.0.0/16'] };
        await hosting(definition, { manifest: { capabilities } }, async (host) => {
            host.network.name('git.example', ['203.0.113.7', '10.1.0.5', '10.2.0.5', '8.8.8.8']);
            expect(await done(host)).to.equal(['10.1.0.5', '8.8.8.8']);
            host.network.name('git.example', ['10.2.0.5']);
            expect(await done(host)).to.include({ reason: 'CAPABILITY_MISSING' });
            host.network.name('git.example', []);
            expect(await done(host)).to.include({ code: 40400 });
            host.faults.fail('resolve', errors.inUse('a test'));
            expect(await done(host)).to.include({ code: 40901 });
        });
    });

    it('opens granted folders in a machine of its own', async () => {
        const definition = doing(async (ctx) => {
            const files = ctx.files('/var/www');
            const handle = await files.open('new.txt', 'wx');
            await handle.writeFile('x');
            await handle.close();
            return (await files.list('')).map(({ name, type, size }) => `${name} ${type} ${size}`).sort();
        });
        await hosting(definition, { manifest: { capabilities: { files: ['/var/www'] } } }, async (host) => {
            mkdirSync(join(host.machine, 'var/www/sub'));
            writeFileSync(join(host.machine, 'var/www/old.txt'), 'abc');
            expect(await done(host)).to.include(['new.txt file 1', 'old.txt file 3']);
            expect(await done(host)).to.include({ reason: 'CONFLICT' });
            host.faults.fail('files', errors.storageFull());
            expect(await done(host)).to.include({ reason: 'STORAGE_FULL' });
            host.faults.clear();
            await host.refuse('files');
            expect(await done(host)).to.include({ reason: 'CAPABILITY_MISSING' });
        });
    });

    it('gives a plugin the files and programs of the real machine, except what the test says otherwise', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'portico-real-'));
        const definition = doing(async (ctx) => {
            const handle = await ctx.files(folder).open('note.txt', 'wx');
            await handle.writeFile('real');
            await handle.close();
            const { stdout } = await ctx.exec('cat', ['note.txt'], { cwd: folder });
            return [stdout, (await ctx.exec('git', ['--version'])).stdout];
        });
        const capabilities = { files: [folder], exec: ['cat', 'git'] };
        try {
            await hosting(definition, { machine: 'real', manifest: { capabilities } }, async (host) => {
                host.programs.answer('git', 'none');
                expect(await done(host)).to.equal(['real', 'none']);
                expect([host.machine, readFileSync(join(folder, 'note.txt'), 'utf8')]).to.equal([
                    '/',
                    'real'
                ]);
            });
        } finally {
            rmSync(folder, { recursive: true });
        }
    });

    it("keeps hosts and certificates under the panel's rules", async () => {
        const definition = doing(async (ctx, actor) => {
            const made = await ctx.hosts.create({ domain: 'new.example', upstream: '127.0.0.1:1' }, actor);
            const changed = await ctx.hosts.update(made.host.id, { upstream: '127.0.0.1:2' }, { version: 1 });
            const stale = await ctx.hosts
                .update(made.host.id, {}, { version: 1 })
                .catch((error: { code: number }) => error.code);
            const taken = await ctx.hosts
                .create({ domain: 'theirs.example', upstream: '127.0.0.1:1' })
                .catch((error: { code: number }) => error.code);
            const php = await ctx.hosts.create({
                domain: 'php.example',
                type: 'php',
                php: { root: '/srv/php', upstreams: [{ address: '127.0.0.1:3' }, { address: '127.0.0.1:4' }] }
            });
            const foreign = await ctx.hosts.remove(1).catch((error: { code: number }) => error.code);
            return {
                upstream: changed.host.upstream,
                version: changed.host.version,
                seen: (await ctx.hosts.list()).length,
                stale,
                taken,
                foreign,
                upstreams: await ctx.hosts.upstreams(made.host.id),
                responders: (await ctx.hosts.upstreams(php.host.id)).map(({ address }) => address)
            };
        });
        await hosting(
            definition,
            { manifest: { capabilities: { hosts: 'own', files: ['/srv/php'] } } },
            async (host) => {
                host.hosts.addHost({ domain: 'theirs.example' });
                const { code } = await host.as({ permissions: ['write'] }).post('/do', {});
                expect(code).to.equal(40300);
                expect(await done(host)).to.equal({
                    upstream: '127.0.0.1:2',
                    version: 2,
                    seen: 2,
                    stale: 41200,
                    taken: 40900,
                    foreign: 40400,
                    upstreams: [{ address: '127.0.0.1:2', requests: 0, healthy: true }],
                    responders: ['127.0.0.1:3', '127.0.0.1:4']
                });
                expect(host.hosts.hosts.map(({ domain, owner }) => [domain, owner])).to.equal([
                    ['theirs.example', null],
                    ['new.example', 'test'],
                    ['php.example', 'test']
                ]);
            }
        );
    });

    it('says where the panel listens, to a plugin that may know', async () => {
        const definition = doing((ctx) => ctx.panel.listeners());
        const manifest = { capabilities: { panel: ['listeners' as const] } };
        await hosting(definition, { manifest }, async (host) => {
            host.panel.listeners.splice(1);
            expect(await done(host)).to.equal([
                { role: 'panel', protocol: 'tcp', address: '0.0.0.0', port: 39921 }
            ]);
            await host.refuse('panel', 'listeners');
            const { code } = await host.as('admin').post('/do', {});
            expect(code).to.equal(50305);
        });
    });

    it('runs hooks: taps, published ones, and collecting', async () => {
        const definition = plugin((ctx) => {
            ctx.hooks.tap('host.guard', ({ after }) =>
                after?.['domain'] === 'bad.example' ? { refuse: 'Not that one' } : undefined
            );
            ctx.hooks.tap('host.afterChange', () => {
                throw new Error('oops');
            });
            ctx.route({
                method: 'POST',
                path: '/do',
                access: 'write',
                async handler() {
                    const outcomes = await Array.fromAsync(
                        ctx.hooks.collect('backup.collect', () => ({ folder: ctx.dataDir }))
                    );
                    return outcomes.map(({ plugin: from, ok }) => `${from} ${ok}`);
                }
            });
        });
        await hosting(
            definition,
            { manifest: { capabilities: { taps: ['host.guard'], collect: ['backup.collect'] } } },
            async (host) => {
                await host.hooks.run('host.guard', {
                    action: 'create',
                    before: null,
                    after: exampleHost('good.example')
                });
                expect(
                    await failed(
                        host.hooks.run('host.guard', {
                            action: 'create',
                            before: null,
                            after: exampleHost('bad.example')
                        })
                    )
                ).to.include({ code: 40920, message: 'Not that one' });
                await host.hooks.run('host.afterChange', {
                    action: 'delete',
                    host: exampleHost('a.example')
                });
                expect(host.hooks.failures.map(({ hook }) => hook)).to.equal(['host.afterChange']);
                host.hooks.tap(
                    'backup.collect',
                    () => [{ name: 'db', title: 'Database', path: '/lent/db' }],
                    'other'
                );
                expect(await done(host)).to.equal(['other true']);
                await host.stop();
                expect(host.hooks.taps().map(({ plugin: owner }) => owner)).to.equal(['other']);
                await host.start();
            }
        );
    });

    it('publishes every hook of the core', async () => {
        const names = [
            ...readFileSync(join(root, 'sdk/src/hooks.ts'), 'utf8').matchAll(
                /^ {4}'([\w.]+)': (Notify|Guard|Waterfall|Collect)</gm
            )
        ].map(([, name = '', kind = '']) => [name, kind.toLowerCase()] as const);
        expect(names.length).to.be.above(15);
        await hosting(
            plugin(() => undefined),
            {},
            async (host) => {
                for (const [name, kind] of names) {
                    const outcome = (await host.hooks.run(name as 'panel.started', {})) as unknown;
                    expect([name, outcome]).to.equal([
                        name,
                        kind === 'collect' ? [] : kind === 'waterfall' ? {} : undefined
                    ]);
                }
                expect((await failed(host.hooks.run('no.such' as 'panel.started', {}))).message).to.equal(
                    'The hook no.such is not published'
                );
            }
        );
    });

    it('lets partners come and go', async () => {
        interface Math {
            add(input: { a: number }, call: Call): Promise<number>;
        }
        const heard: boolean[] = [];
        const definition = definePlugin({
            optional: { math: contract<Math>() },
            setup(ctx) {
                ctx.onPartner('math', (partner) => void heard.push(partner !== undefined));
                ctx.route({
                    method: 'POST',
                    path: '/do',
                    access: 'write',
                    handler: async ({ actor }) => ({
                        value:
                            ctx.plugins.math === undefined
                                ? 'nobody'
                                : await ctx.plugins.math.add({ a: 1 }, { actor })
                    })
                });
            }
        });
        await hosting(definition, {}, async (host) => {
            expect(await done(host)).to.equal('nobody');
            await host.partners.set('math', {
                add: async ({ a }: { a: number }, { plugin: from, actor }) =>
                    `${from} ${actor?.username} ${a}`
            });
            expect(await done(host)).to.equal('test admin 1');
            host.faults.fail('plugins', errors.notFound());
            expect(await done(host)).to.include({ code: 40400 });
            host.faults.clear();
            await host.partners.set('math', null);
            expect([await done(host), heard]).to.equal(['nobody', [true, false]]);
        });
    });

    it('shows tasks from their beginning to their end', async () => {
        const finished = Promise.withResolvers<void>();
        let ending: Promise<void> = finished.promise;
        const definition = doing(async (ctx, actor) =>
            ctx.task(
                { kind: 'copy', access: 'read', key: 'one', actor },
                async ({ progress, log, signal, actor: who }) => {
                    progress(0.5, 'half');
                    log(`for ${who?.username}`);
                    await new Promise((resolve, reject) => {
                        signal.addEventListener('abort', () => reject(signal.reason as Error));
                        void ending.then(() => resolve(undefined));
                    });
                    return { copied: 1 };
                }
            )
        );
        await hosting(definition, {}, async (host) => {
            expect(await done(host)).to.include({ id: 1, kind: 'test.copy', state: 'queued' });
            expect(await done(host)).to.include({ code: 40901 });
            finished.resolve();
            expect(await host.tasks.wait()).to.include({
                state: 'succeeded',
                result: { copied: 1 },
                log: ['half', 'for admin'],
                access: 'test:read'
            });
            ending = new Promise(() => undefined);
            await done(host);
            expect(await host.tasks.cancel()).to.include({ state: 'cancelled', result: null });
        });
    });

    it('carries sockets with their tickets', async () => {
        const definition = plugin((ctx) => {
            ctx.route({
                method: 'POST',
                path: '/tickets',
                access: 'write',
                handler: ({ actor }) => ctx.tickets.issue(actor, { permission: 'write', data: { room: 1 } })
            });
            ctx.socket({
                path: '/talk/{ticket}',
                access: { ticket: 'ticket', permission: 'write' },
                validate: { params: joi.object({ ticket: joi.string().required() }) },
                async handler(socket, { ticket }) {
                    await socket.send(JSON.stringify(ticket));
                    for await (const message of socket) {
                        if (message === 'bye') {
                            return;
                        }
                        await socket.send(`echo ${String(message)}`);
                    }
                }
            });
        });
        await hosting(definition, {}, async (host) => {
            const open = async (): Promise<string> =>
                (await host.as('admin').post<{ ticket: string }>('/tickets', {})).data.ticket;
            const ticket = await open();
            const socket = await host.as('anonymous').socket(`/talk/${ticket}`);
            expect(await socket.receive()).to.equal('{"room":1}');
            socket.send('x');
            expect(await socket.receive()).to.equal('echo x');
            socket.send('bye');
            expect(await socket.closed).to.equal({ code: 1000, reason: '' });
            expect(await failed(host.as('admin').socket(`/talk/${ticket}`))).to.include({ code: 40101 });
            const late = await host.as('anonymous').socket(`/talk/${await open()}`);
            await host.stop();
            expect((await late.closed).code).to.equal(1012);
            await host.start();
        });
    });

    it('reads event streams, and tells the plugin when it leaves', async () => {
        const left = Promise.withResolvers<void>();
        const definition = plugin((ctx) =>
            ctx.stream({
                path: '/ticks',
                access: 'read',
                async *handler({ signal, lastEventId }) {
                    signal.addEventListener('abort', () => left.resolve());
                    for (let n = Number(lastEventId ?? 0); !signal.aborted; n += 1) {
                        yield { id: String(n), event: 'tick', data: { n } };
                        await new Promise((resolve) => setImmediate(resolve));
                    }
                }
            })
        );
        await hosting(definition, {}, async (host) => {
            for await (const event of host.as('viewer').events('/ticks', { lastEventId: '7' })) {
                expect(event).to.equal({ id: '7', event: 'tick', data: { n: 7 } });
                break;
            }
            await left.promise;
            expect(await failed(host.as('anonymous').events('/ticks').next())).to.include({ code: 40100 });
        });
    });

    it('breaks each door when the test says so', async () => {
        const definition = doing(async (ctx, actor) => {
            const tried: Record<string, unknown> = {};
            const attempt = async (name: string, work: () => Promise<unknown>): Promise<void> => {
                tried[name] = await work().then(
                    () => 'done',
                    (error: { reason?: string }) => error.reason
                );
            };
            await attempt('db.write', () => ctx.db.write(async () => undefined));
            await attempt('notify', () => ctx.notify({ event: 'e', severity: 'info', title: 't' }));
            await attempt('secrets.seal', () => ctx.secrets.seal('x'));
            await attempt('tickets.issue', () => ctx.tickets.issue(actor, { permission: 'write' }));
            await attempt('audit', () => ctx.audit({ action: 'a', resource: 'r' }));
            await attempt('schedule', async () =>
                (await ctx.schedule('s', { everySeconds: 1 }, () => undefined))[Symbol.asyncDispose]()
            );
            return tried;
        });
        await hosting(definition, {}, async (host) => {
            const doors = [
                'db.write',
                'notify',
                'secrets.seal',
                'tickets.issue',
                'audit',
                'schedule'
            ] as const;
            expect(await done(host)).to.equal(Object.fromEntries(doors.map((door) => [door, 'done'])));
            doors.forEach((door) => host.faults.fail(door));
            expect(await done(host)).to.equal(
                Object.fromEntries(
                    doors.map((door) => [door, door === 'db.write' ? 'STORAGE_FULL' : 'NOT_READY'])
                )
            );
            expect(host.notifications).to.equal([{ event: 'test.e', severity: 'info', title: 't' }]);
        });
    });

    it('checks health, also where it hangs', async () => {
        const definition = plugin((ctx) => {
            ctx.health('good', () => ({ state: 'ok' }));
            ctx.health('slow', () => new Promise(() => undefined));
        });
        await hosting(definition, { timing: { healthMs: 20 } }, async (host) => {
            expect(await host.health()).to.equal([
                { state: 'ok', name: 'good' },
                { name: 'slow', state: 'failed', evidence: 'Not done within 0.02 s' }
            ]);
        });
    });
});
