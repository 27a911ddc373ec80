import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Actor, type Context, definePlugin, joi, type Notify } from '@portico/sdk';
import { defineEntity, p } from '@portico/sdk/db';

import { GenerationFault } from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { caller } from '../../../../support/core/http-ports.ts';
import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';
import { until } from '../../../../support/until.ts';

declare module '@portico/sdk' {
    interface Hooks {
        'probe.happened': Notify<{ readonly n: number }>;
    }
}

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const rows = defineEntity({
    name: 'Row',
    tableName: 'probe_rows',
    properties: { id: p.integer().primary(), n: p.integer() }
});
const migration = { name: '1', up: ['create table probe_rows (id integer primary key, n integer not null)'] };

let rig: PluginRig;

/** A context of a plugin that runs. */
async function contextOf(
    setup: (ctx: Context) => void = () => undefined,
    options: Parameters<PluginRig['run']>[1] = {}
): Promise<{ readonly ctx: Context; readonly generation: Awaited<ReturnType<PluginRig['run']>> }> {
    let found!: Context;
    const generation = await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
                setup(ctx);
            }
        }),
        options
    );
    return { ctx: found, generation };
}

async function faultOf(work: Promise<unknown>): Promise<GenerationFault> {
    const error: unknown = await work.then(
        () => null,
        (thrown: unknown) => thrown
    );
    if (!(error instanceof GenerationFault)) {
        throw new Error('It did not fail as it should', { cause: error });
    }
    return error;
}

describe('createPluginHost', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
    });

    afterEach(() => rig.close());

    it('says at which stage and why a generation cannot be made, and leaves nothing behind', async () => {
        const faults = await Promise.all([
            faultOf(
                rig.prepare(
                    definePlugin({
                        settings: joi.object({ key: joi.secret().required() }),
                        setup: () => undefined
                    }),
                    { name: 'a1' }
                )
            ),
            faultOf(
                rig.prepare(
                    definePlugin({ settings: joi.object({ n: joi.number() }), setup: () => undefined }),
                    { name: 'a2', settings: { n: 'x' } }
                )
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        migrations: [{ name: '1', up: ['create nonsense'] }],
                        setup: () => undefined
                    }),
                    { name: 'a3' }
                )
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        setup: () => {
                            throw new Error('no luck');
                        }
                    }),
                    { name: 'a4' }
                )
            ),
            faultOf(
                rig.prepare(definePlugin({ setup: () => new Promise(() => undefined) }), {
                    name: 'a5',
                    timing: { setupMs: 50 }
                })
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        setup: (ctx) =>
                            ctx.route({ method: 'GET', path: '/', access: 'read', handler: () => 1 })
                    }),
                    { name: 'a6' }
                )
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        setup: (ctx) =>
                            ctx.route({ method: 'GET', path: '/x', access: 'fly', handler: () => 1 })
                    }),
                    { name: 'a7' }
                )
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        setup: (ctx) => ctx.route({ method: 'GET', path: '/x', handler: () => 1 } as never) // wrong on purpose
                    }),
                    { name: 'a8' }
                )
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        setup: (ctx) =>
                            ctx.route({
                                method: 'GET',
                                path: '/x',
                                access: { public: 'every caller may see it' },
                                handler: () => 1
                            })
                    }),
                    { name: 'a9' }
                )
            ),
            faultOf(
                rig.prepare(definePlugin({ setup: (ctx) => ctx.hooks.tap('host.guard', () => undefined) }), {
                    name: 'a10'
                })
            ),
            faultOf(
                rig.prepare(
                    definePlugin({
                        setup: (ctx) =>
                            ctx.route({ method: 'GET', path: '/x', access: 'hosts:read', handler: () => 1 })
                    }),
                    { name: 'a11' }
                )
            )
        ]);
        expect(faults.map(({ stage, code }) => [stage, code])).to.equal([
            ['loaded', 'SETTINGS_REQUIRED'],
            ['loaded', 'SETTINGS_INVALID'],
            ['mounted', 'MIGRATION_FAILED'],
            ['mounted', 'SETUP_FAILED'],
            ['mounted', 'SETUP_TIMEOUT'],
            ['mounted', 'SETUP_FAILED'],
            ['mounted', 'REGISTRATION_INVALID'],
            ['mounted', 'SETUP_FAILED'],
            ['mounted', 'REGISTRATION_INVALID'],
            ['mounted', 'REGISTRATION_INVALID'],
            ['mounted', 'SETUP_FAILED']
        ]);
        expect(faults[3]?.message).to.equal('no luck');
        expect(rig.hooks.host.taps()).to.equal([]);
        expect(rig.gateway.servers()).to.have.length(1);
    });

    it('refuses registration after setup, and work after the end', async () => {
        const { ctx, generation } = await contextOf();
        expect(() => ctx.route({ method: 'GET', path: '/late', access: 'read', handler: () => 1 })).to.throw(
            /belongs in setup/
        );
        expect(() => ctx.hooks.tap('panel.started', () => undefined)).to.throw(/belongs in setup/);
        await ctx.db.write((em) => em.execute('create table t (n integer)'));
        await generation.close('test');
        expect(ctx.signal.aborted).to.be.true();
        for (const work of [
            () => ctx.db.read(async () => 1),
            () => ctx.secrets.seal('x'),
            () => ctx.exec('true', []),
            () => ctx.fetch('http://127.0.0.1'),
            () => ctx.task({ kind: 'x', access: 'read' }, async () => 1),
            () => ctx.schedule('x', { everySeconds: 1 }, () => undefined)
        ]) {
            const error = await work().then(
                () => null,
                (thrown: unknown) => thrown as { code: number; reason: string }
            );
            expect([error?.code, error?.reason]).to.equal([50304, 'GENERATION_ENDED']);
        }
        expect(() => ctx.dial()).to.throw(/has ended/);
    });

    it('keeps what needs a start until there is one', async () => {
        let early: unknown = null;
        await contextOf(
            (ctx) =>
                ctx.health('early', async () => {
                    early = await ctx
                        .schedule('x', { everySeconds: 1 }, () => undefined)
                        .catch((error: unknown) => error);
                    return { state: 'ok' };
                }),
            { name: 'one' }
        );
        const generation = await rig.prepare(
            definePlugin({
                setup: (ctx) =>
                    ctx.health('early', async () => {
                        early = await ctx
                            .notify({ event: 'x', severity: 'info', title: 'x' })
                            .catch((error: unknown) => error);
                        return { state: 'ok' };
                    })
            }),
            { name: 'two' }
        );
        await generation.health();
        expect((early as { reason: string }).reason).to.equal('NOT_STARTED');
    });

    it('hands on which channels a notification is for, and refuses what is no list of ids', async () => {
        const { ctx } = await contextOf();
        const message = { event: 'x', severity: 'info', title: 'x' } as const;
        await ctx.notify({ ...message, channels: [3, 5] });
        await ctx.notify(message);
        for (const channels of ['3', [1.5], ['3'], [null], Array.from({ length: 101 }, (_, id) => id)]) {
            await expect(ctx.notify({ ...message, channels: channels as never })).to.reject(); // wrong on purpose
        }
        expect(rig.notified).to.equal([
            { event: 'probe.x', title: 'x', channels: [3, 5] },
            { event: 'probe.x', title: 'x' }
        ]);
    });

    it('lets go of everything that a generation acquired, says what, and leaves its data', async () => {
        const stopped: string[] = [];
        const peer = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
        await once(peer, 'listening');
        const { port } = peer.address() as { port: number };
        const folder = join(rig.root, 'files');
        mkdirSync(folder);
        let disposed = false;
        const { ctx, generation } = await contextOf(
            (own) => {
                own.route({ method: 'GET', path: '/x', access: 'read', handler: () => 1 });
                own.hooks.tap('panel.started', () => undefined);
                own.hooks.define('probe.happened', { kind: 'notify', summary: 'It happened' });
                own.onStop(() => void stopped.push('first'));
                own.onStop(() => void stopped.push('second'));
                own.use({
                    [Symbol.dispose]: () => {
                        disposed = true;
                    }
                });
            },
            { capabilities: { exec: ['sleep'], files: [folder], network: ['127.0.0.1'] } }
        );
        const child = await ctx.spawn('sleep', ['600']);
        await ctx.schedule('tick', { everySeconds: 60 }, () => undefined);
        const socket = ctx.dial({ host: '127.0.0.1', port });
        await new Promise((resolve) => socket.once('connect', resolve));
        socket.on('error', () => undefined);
        const handle = await ctx.files(folder).open('a.txt', 'w');
        await ctx.task(
            { kind: 'long', access: 'read' },
            (run) =>
                new Promise((_resolve, reject) =>
                    run.signal.addEventListener('abort', () => reject(run.signal.reason as Error))
                )
        );
        await ctx.db.write((em) => em.execute('create table t (n integer)'));
        await until(
            () =>
                rig.tasks.list(caller('admin', ['probe:read']), {}, { limit: 10, before: null }).tasks[0]
                    ?.state === 'running'
        );
        const report = await generation.close('test');
        const names = report.released.map(({ kind }) => kind).sort();
        expect(names).to.equal([
            'contract',
            'database',
            'disposable',
            'file',
            'hook',
            'partners',
            'process',
            'route',
            'schedule',
            'socket',
            'tap',
            'task'
        ]);
        expect([report.leaked, report.failures, report.cut]).to.equal([[], [], 0]);
        expect([stopped, disposed, handle.fd, socket.destroyed]).to.equal([
            ['second', 'first'],
            true,
            -1,
            true
        ]);
        expect((await child.exited).signal).to.equal('SIGTERM');
        expect([rig.hooks.host.taps(), rig.gateway.servers().length, generation.held()]).to.equal([
            [],
            1,
            []
        ]);
        expect(existsSync(join(rig.root, 'data/probe/data.db'))).to.be.true();
        expect((await generation.close('again')).released).to.equal(report.released);
        peer.close();
    });

    it('names what does not end, and ends all the rest', async () => {
        const { generation } = await contextOf(
            (ctx) => {
                ctx.onStop(() => new Promise(() => undefined));
                ctx.use({
                    async [Symbol.asyncDispose]() {
                        throw new Error('stuck');
                    }
                });
            },
            { timing: { stopMs: 50 } }
        );
        const report = await generation.close('test');
        expect(report.failures).to.equal(['Not done within 0.05 s']);
        expect(report.leaked).to.equal([{ kind: 'disposable', name: 'Object', error: 'stuck' }]);
    });

    it('enables and disables a hundred times without anything left', async () => {
        const definition = definePlugin({
            entities: [rows],
            migrations: [migration],
            setup(ctx) {
                ctx.hooks.define('probe.happened', { kind: 'notify', summary: 'It happened' });
                ctx.hooks.tap('panel.started', () => undefined);
                ctx.onStart(async () => {
                    await ctx.schedule('tick', { everySeconds: 60 }, () => undefined);
                    await ctx.db.write(async (em) => void em.create(rows, { n: 1 }));
                });
                ctx.route({
                    method: 'GET',
                    path: '/n',
                    access: 'read',
                    handler: async () => ({ n: await ctx.db.read((em) => em.count(rows)) })
                });
            }
        });
        const kinds = (): Record<string, number> =>
            process
                .getActiveResourcesInfo()
                .reduce<Record<string, number>>(
                    (all, kind) => ({ ...all, [kind]: (all[kind] ?? 0) + 1 }),
                    {}
                );
        const cycle = async (expected: number): Promise<void> => {
            const generation = await rig.run(definition);
            expect((await rig.ask('viewer', 'GET', '/api/plugins/probe/n')).data.n).to.equal(expected);
            const { leaked } = await generation.close('test');
            expect(leaked).to.equal([]);
        };
        await cycle(1);
        const before = kinds();
        for (let round = 2; round <= 100; round += 1) {
            await cycle(round);
        }
        await until(() => (kinds()['Timeout'] ?? 0) <= (before['Timeout'] ?? 0));
        expect((await rig.ask('viewer', 'GET', '/api/plugins/probe/n')).status).to.equal(404);
        expect(rig.hooks.host.taps()).to.equal([]);
    });

    it('seals secrets for the plugin and its package, freezes settings, and tells of accepted ones', async () => {
        const seen: unknown[] = [];
        let ctx!: Context<{ greeting: string; token: string }>;
        const definition = definePlugin({
            settings: joi.object({
                greeting: joi.string().max(5).default('Hello'),
                token: joi.secret().required()
            }),
            setup(own) {
                ctx = own;
                own.onSettings((now, old) => void seen.push([now.greeting, old.greeting, now.token]));
            }
        });
        const first = await rig.prepare(
            definePlugin({
                settings: joi.object({ greeting: joi.string().max(5).default('Hello'), token: joi.secret() }),
                setup: () => undefined
            })
        );
        const kept = await first.seal({ token: 'a secret' });
        expect(JSON.stringify(kept)).to.not.contain('a secret');
        expect(rig.host.view(kept)).to.equal({ token: { set: true } });
        const generation = await rig.run(definition, { settings: kept });
        expect([ctx.settings.greeting, ctx.settings.token, Object.isFrozen(ctx.settings)]).to.equal([
            'Hello',
            'a secret',
            true
        ]);
        const changed = await generation.seal({ greeting: 'Ahoy', token: { set: true } });
        await generation.apply(changed);
        expect([ctx.settings.greeting, seen]).to.equal(['Ahoy', [['Ahoy', 'Hello', 'a secret']]]);
        await expect(generation.seal({ greeting: 'too long' })).to.reject();
        await expect(generation.seal({ token: null })).to.reject();
        await expect(rig.prepare(definition, { settings: kept, package: '@evil/probe' })).to.reject();
    });

    it('keeps each write whole, and the files of plugins apart', async () => {
        const { ctx } = await contextOf();
        await ctx.db.write((em) => em.execute('create table t (n integer)'));
        await expect(
            ctx.db.write(async (em) => {
                await em.execute('insert into t values (1)');
                throw new Error('half');
            })
        ).to.reject('half');
        expect(await ctx.db.read((em) => em.execute('select count(*) as n from t'))).to.equal([{ n: 0 }]);
        await expect(ctx.db.read((em) => em.execute('insert into t values (1)'))).to.reject();
        expect(readFileSync(join(rig.root, 'data/probe/data.db')).subarray(0, 15).toString()).to.equal(
            'SQLite format 3'
        );
    });

    it('runs health checks within their time', async () => {
        const { generation } = await contextOf(
            (ctx) => {
                ctx.health('good', () => ({ state: 'ok', evidence: 'seen' }));
                ctx.health('hangs', () => new Promise(() => undefined));
                ctx.health('throws', () => {
                    throw new Error('down');
                });
            },
            { timing: { healthMs: 50 } }
        );
        expect((await generation.health()).map(({ name, state }) => [name, state])).to.equal([
            ['good', 'ok'],
            ['hangs', 'failed'],
            ['throws', 'failed']
        ]);
    });

    it('runs tasks as the asker while they last, one for each key', async () => {
        const results: unknown[] = [];
        const { promise: gate, resolve: release } = Promise.withResolvers<void>();
        await contextOf(
            (own) =>
                own.route({
                    method: 'POST',
                    path: '/go',
                    access: 'write',
                    async handler({ actor }) {
                        return own.task({ kind: 'work', access: 'read', actor, key: 'one' }, async (run) => {
                            run.progress(0.5, 'half');
                            await gate;
                            results.push(
                                (await own.api.call(run.actor as Actor, { id: 'things.list' })).data
                            );
                            return { done: true };
                        });
                    }
                }),
            { capabilities: { api: { read: ['*'] } } }
        );
        const { data } = await rig.ask('admin', 'POST', '/api/plugins/probe/go');
        expect((await rig.ask('admin', 'POST', '/api/plugins/probe/go')).code).to.equal(40901);
        release();
        const who = caller('admin', ['probe:read']);
        await until(() => rig.tasks.get(data.id as number, who).state === 'succeeded');
        expect(results).to.equal([[{ for: 'admin', via: 'probe' }]]);
        expect([
            rig.tasks.get(data.id as number, who).result,
            rig.tasks.get(data.id as number, who).kind
        ]).to.equal([{ done: true }, 'probe.work']);
    });

    it('stops acting for a user whose session has ended', async () => {
        let acting!: Promise<unknown>;
        let release = (): void => undefined;
        await contextOf(
            (own) =>
                own.route({
                    method: 'POST',
                    path: '/go',
                    access: 'write',
                    async handler({ actor }) {
                        const gate = new Promise<void>((resolve) => {
                            release = resolve;
                        });
                        return own.task({ kind: 'work', access: 'read', actor }, async (run) => {
                            await gate;
                            acting = own.api
                                .call(run.actor as Actor, { id: 'things.list' })
                                .catch((error: unknown) => error);
                            await acting;
                        });
                    }
                }),
            { capabilities: { api: { read: ['*'] } } }
        );
        await rig.ask('admin', 'POST', '/api/plugins/probe/go');
        rig.revoke('admin');
        release();
        await until(() => acting !== undefined);
        expect(((await acting) as { reason: string }).reason).to.equal('TOKEN_REVOKED');
    });

    it('publishes hooks under its own name only, and lets others tap them', async () => {
        const seen: number[] = [];
        await expect(
            rig.prepare(
                definePlugin({
                    setup: (ctx) => void ctx.hooks.define('panel.started', { kind: 'notify', summary: 'x' })
                }),
                { name: 'thief' }
            )
        ).to.reject();
        let fire!: (payload: { n: number }) => Promise<unknown>;
        await rig.run(
            definePlugin({ setup: (ctx) => ctx.hooks.tap('probe.happened', ({ n }) => void seen.push(n)) }),
            { name: 'other' }
        );
        const { generation } = await contextOf((ctx) => {
            fire = ctx.hooks.define('probe.happened', { kind: 'notify', summary: 'It happened' });
        });
        await fire({ n: 1 });
        await generation.close('test');
        const again = await contextOf((ctx) => {
            fire = ctx.hooks.define('probe.happened', { kind: 'notify', summary: 'It happened' });
        });
        await fire({ n: 2 });
        expect(seen).to.equal([1, 2]);
        void again;
    });

    it('tells of an optional partner that comes and goes', async () => {
        const seen: boolean[] = [];
        let ctx!: Context;
        await rig.run(
            definePlugin({
                optional: { math: { '~portico': 'contract' } },
                setup(own) {
                    ctx = own;
                    own.onPartner('math', (partner) => void seen.push(partner !== undefined));
                }
            })
        );
        const partner = () =>
            (ctx.plugins as Record<string, { one(input: object): Promise<number> } | undefined>)['math'];
        const present = (): boolean => partner() !== undefined;
        expect(present()).to.be.false();
        const math = await rig.run(
            definePlugin({ setup: () => ({ one: async (_input: { n: number }) => 1 }) }),
            { name: 'math' }
        );
        await until(() => seen.length === 1);
        expect([present(), await partner()?.one({})]).to.equal([true, 1]);
        await math.close('test');
        await until(() => seen.length === 2);
        expect([present(), seen]).to.equal([false, [true, false]]);
    });
});

describe('the journal of plugins', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
    });
    afterEach(() => rig.close());

    it('holds a change from before its handler until its entry, and tells of those that were cut', async () => {
        const { promise: gate, resolve: release } = Promise.withResolvers<void>();
        await contextOf((ctx) => {
            ctx.route({
                method: 'POST',
                path: '/slow',
                access: 'write',
                async handler() {
                    await gate;
                    return { done: true };
                }
            });
            ctx.route({
                method: 'DELETE',
                path: '/fails',
                access: 'write',
                handler: () => {
                    throw new Error('broken');
                }
            });
        });
        const asking = rig.ask('admin', 'POST', '/api/plugins/probe/slow');
        await until(async () => (await rig.host.recover()) === 1);
        const [cut] = rig.http.recorded;
        expect([cut?.action, cut?.resource, cut?.outcome, cut?.code, cut?.actor.username]).to.equal([
            'create',
            'probe',
            'failure',
            50300,
            'admin'
        ]);
        release();
        expect((await asking).status).to.equal(200);
        expect((await rig.ask('admin', 'DELETE', '/api/plugins/probe/fails')).code).to.equal(50000);
        expect([await rig.host.recover(), rig.http.recorded.length, rig.http.refusals.at(-1)?.code]).to.equal(
            [0, 2, 50000]
        );
    });

    it('serves the files of the package below the plugin, in a sandbox, and no others', async () => {
        const folder = join(rig.root, 'dist');
        mkdirSync(folder);
        writeFileSync(join(folder, 'page.html'), '<p>hello</p>');
        writeFileSync(join(folder, 'page.js'), 'run()');
        writeFileSync(join(rig.root, 'outside.txt'), 'no');
        await contextOf((ctx) => ctx.assets({ folder: 'dist' }), {
            manifest: {
                contributes: {
                    pages: [
                        { id: 'main', title: 'Main', access: 'read', entry: 'assets/page.html' },
                        { id: 'made', title: 'Q&A <b>', access: 'read', entry: 'assets/page.js' }
                    ]
                }
            }
        });
        const page = await rig.ask(null, 'GET', '/api/plugins/probe/assets/page.html');
        const policyOf = (scripts: string): string =>
            `sandbox allow-scripts; default-src 'none'; script-src 'self'${scripts}; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'`;
        expect([page.status, page.text, page.headers.get('content-security-policy')]).to.equal([
            200,
            '<p>hello</p>',
            policyOf('')
        ]);
        const script = await rig.ask(null, 'GET', '/api/plugins/probe/assets/page.js');
        expect(
            [
                'content-type',
                'access-control-allow-origin',
                'cross-origin-resource-policy',
                'content-security-policy'
            ].map((name) => script.headers.get(name))
        ).to.equal([
            'text/javascript; charset=utf-8',
            '*',
            'cross-origin',
            "sandbox; default-src 'none'; frame-ancestors 'none'"
        ]);
        const made = await rig.ask(null, 'GET', '/api/plugins/probe/pages/made?lang=zh');
        const map = /<script type="importmap">(.*?)<\/script>/.exec(made.text)?.[1] ?? '';
        const hash = createHash('sha256').update(map).digest('base64');
        expect([made.status, made.headers.get('content-security-policy')]).to.equal([
            200,
            policyOf(` 'sha256-${hash}'`)
        ]);
        expect(JSON.parse(map)).to.equal({ imports: { '@portico/sdk/page': './sdk/page.js' } });
        expect(made.text).to.contain([
            '<html lang="zh">',
            '<title>Q&#38;A &#60;b&#62;</title>',
            '<link rel="stylesheet" href="sdk/page.css" crossorigin>',
            '<script type="module" src="/api/plugins/probe/assets/page.js" crossorigin></script>'
        ]);
        const sdk = await rig.ask(null, 'GET', '/api/plugins/probe/pages/sdk/page.js');
        expect([sdk.headers.get('content-type'), sdk.headers.get('access-control-allow-origin')]).to.equal([
            'text/javascript; charset=utf-8',
            '*'
        ]);
        expect(sdk.text).to.contain('export async function connect').and.not.contain('interface ');
        const style = await rig.ask(null, 'GET', '/api/plugins/probe/pages/sdk/page.css');
        expect([style.headers.get('content-type'), style.text.includes('--portico-accent:')]).to.equal([
            'text/css; charset=utf-8',
            true
        ]);
        expect((await rig.ask(null, 'GET', '/api/plugins/probe/pages/sdk/none.js')).status).to.equal(404);
        expect((await rig.ask(null, 'GET', '/api/plugins/probe/pages/made?lang=%22%3E')).status).to.equal(
            400
        );
        const routes = await rig.ask('viewer', 'GET', '/api/plugins/probe/none');
        expect(routes.headers.get('access-control-allow-origin')).to.equal(null);
        for (const path of ['../outside.txt', '%2e%2e/outside.txt', '..%2foutside.txt', 'none.txt']) {
            expect((await rig.ask(null, 'GET', `/api/plugins/probe/assets/${path}`)).status, path).to.equal(
                404
            );
        }
        await expect(
            rig.prepare(definePlugin({ setup: (ctx) => ctx.assets({ folder: '..' }) }), { name: 'thief' })
        ).to.reject(/not inside the package/);
    });
});
