import { get as ask } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type FailureError, isFailure } from '@portico/sdk';

import { readFragments } from '../../../../core/src/engine/fragments/check.ts';
import { callOf, person } from '../../../support/core/store.ts';
import { creates, faultyRig, realRig, type Rig, updates } from '../../../support/engine/rig.ts';
import { startUpstream, type TestUpstream } from '../../../support/servers/upstream.ts';

export const lab = Lab.script();
const { after, afterEach, before, describe, it } = lab;

const header = (value: string) => ({
    slot: 'handlers',
    handlers: [{ handler: 'headers', response: { set: { 'X-Guarded': [value] } } }]
});
const failureOf = async (work: Promise<unknown>): Promise<FailureError> => {
    const error: unknown = await work.then(
        () => null,
        (thrown: unknown) => thrown
    );
    if (!isFailure(error)) {
        throw new Error(`It did not fail: ${String(error)}`);
    }
    return error as FailureError;
};

describe('readFragments', () => {
    const faultsOf = (...given: readonly unknown[]): readonly string[] => {
        try {
            readFragments(given, { places: ['/var/lib/portico'], mayReach: (host) => host === '127.0.0.1' });
            return [];
        } catch (error) {
            return (
                isFailure(error)
                    ? (error.data?.['errors'] as { message: string }[])
                    : [{ message: String(error) }]
            ).map(({ message }) => message);
        }
    };
    const handler = (more: object) => ({ slot: 'handlers', handlers: [{ handler: 'headers', ...more }] });

    it('lets no request choose where the engine connects to, however the key is spelled', () => {
        const proxy = (more: object): object =>
            handler({ handler: 'subroute', routes: [{ handle: [{ handler: 'reverse_proxy', ...more }] }] });
        const place = '0.handlers.0.routes.0.handle.0';
        expect(faultsOf(proxy({ upstreams: [{ dial: '127.0.0.1:8080' }] }))).to.equal([]);
        expect(faultsOf(proxy({ upstreams: [{ dial: '{http.request.header.X-Dial}' }] }))).to.equal([
            `${place}.upstreams.0.dial may not have a placeholder: it says where the engine connects to`
        ]);
        for (const key of ['DIAL', 'Dial']) {
            expect(faultsOf(proxy({ upstreams: [{ [key]: '127.0.0.1:8080' }] }))).to.equal([
                `${place}.upstreams.0.${key} must be spelled in lower case, and not be null`
            ]);
        }

        expect(faultsOf(proxy({ 'up\u017Ftreams': [] })).length).to.equal(1);
        expect(faultsOf(proxy({ upstreams: null })).length).to.equal(1);
        expect(
            faultsOf(proxy({ dynamic_upstreams: { source: 'srv', name: '{http.request.host}' } })).length
        ).to.equal(1);
        expect(faultsOf(handler({ Handler: 'file_server' })).length).to.equal(2);
        expect(faultsOf(handler({ 'li\u017Ften': ':1' })).length).to.equal(2);
    });

    it("leads the engine to no host that the plugin's grants do not cover", () => {
        const place = '0.handlers.0.upstreams.0.dial';
        expect(
            faultsOf(handler({ handler: 'reverse_proxy', upstreams: [{ dial: '169.254.169.254:80' }] }))
        ).to.equal([
            `${place} leads to 169.254.169.254, which no grant of the plugin covers (capability network)`
        ]);
        for (const dial of ['a.example:80', 'localhost:2019', '[::1]:80', 'x/y']) {
            expect(
                faultsOf(handler({ handler: 'reverse_proxy', upstreams: [{ dial }] })).length,
                dial
            ).to.equal(1);
        }
        const app = (url: string): object => ({ slot: 'apps', name: 'crowdsec', config: { api_url: url } });
        expect([
            faultsOf(app('http://127.0.0.1:1/')).length,
            faultsOf(app('http://10.0.0.1/')).length
        ]).to.equal([0, 1]);
    });

    it('takes what a guard of requests needs', () => {
        const given = [
            {
                slot: 'handlers',
                handlers: [
                    {
                        handler: 'rate_limit',
                        rate_limits: {
                            all: { key: '{http.request.remote.host}', window: '1m', max_events: 100 }
                        }
                    },
                    {
                        handler: 'waf',
                        directives:
                            'SecRule REQUEST_URI "@rx ^/a{2,3}$" "id:1,deny"\nInclude @owasp_crs/*.conf'
                    },
                    {
                        handler: 'subroute',
                        routes: [
                            {
                                match: [
                                    { remote_ip: { ranges: ['10.0.0.0/8'] } },
                                    { path_regexp: { pattern: '^/x{1,2}' } }
                                ],
                                handle: [
                                    { handler: 'static_response', status_code: 403, body: '{"error":"no"}' }
                                ]
                            }
                        ]
                    }
                ]
            },
            {
                slot: 'apps',
                name: 'crowdsec',
                config: { api_url: 'http://127.0.0.1:8080/', api_key: 'k', ticker_interval: '5s' }
            }
        ];
        const { handlers, apps } = readFragments(given, {
            places: [],
            mayReach: (host) => host === '127.0.0.1'
        });
        expect([handlers.length, Object.keys(apps)]).to.equal([3, ['crowdsec']]);
    });

    it('refuses listeners, sockets, files, logs, storage, the administration, and secrets of the machine', () => {
        const bad: readonly unknown[] = [
            null,
            'text',
            {},
            { slot: 'listeners', listen: [':80'] },
            { slot: 'handlers', handlers: {} },
            { slot: 'handlers', handlers: ['x'] },
            { slot: 'handlers', handlers: [{}] },
            { slot: 'apps', name: 'http', config: {} },
            { slot: 'apps', name: 'tls', config: {} },
            { slot: 'apps', name: '../x', config: {} },
            { slot: 'apps', name: 'exec', config: {} },
            { slot: 'apps', name: 'x', config: [] },
            { slot: 'apps', name: 'x', config: { servers: { a: { listen: [':1'] } } } },
            handler({ admin: {} }),
            handler({ storage: {} }),
            handler({ LOGGING: {} }),
            handler({ root: '/etc' }),
            handler({ writer: { filename: '/x' } }),
            { slot: 'handlers', handlers: [{ handler: 'file_server' }] },
            { slot: 'handlers', handlers: [{ handler: 'templates' }] },
            handler({ routes: [{ handle: [{ handler: 'exec', command: 'sh' }] }] }),
            handler({ routes: [{ match: [{ file: { try_files: ['/x'] } }] }] }),
            handler({ routes: [{ match: [{ not: [{ file: {} }] }] }] }),
            handler({ upstreams: [{ dial: 'unix//run/x.sock' }] }),
            handler({ a: 'UNIX+h2c//run/x' }),
            handler({ a: '{env.HOME}' }),
            handler({ '{env.HOME}': 'a' }),
            handler({ a: 'x{file./etc/passwd}' }),
            handler({ a: '{system.hostname}' }),
            handler({ a: '{$SECRET}' }),
            handler({ a: '{http.regexp.portico_entry.2}' }),
            handler({ match: [{ path_regexp: { name: 'portico_entry', pattern: 'x' } }] }),
            handler({ a: '{http.vars.secret}' }),
            handler({ a: 'see /var/lib/portico/keys' })
        ];
        for (const fragment of bad) {
            expect(faultsOf(fragment).length > 0, JSON.stringify(fragment)).to.be.true();
        }
        let deep: object = {};
        for (let level = 0; level < 40; level += 1) {
            deep = { a: deep };
        }
        expect(faultsOf(handler(deep))[0]).to.match(/deeper/);
        expect(faultsOf(handler({ a: 'x'.repeat(300_000) }))[0]).to.match(/bytes/);
        expect(
            faultsOf({
                slot: 'handlers',
                handlers: Array.from({ length: 21 }, () => ({ handler: 'headers' }))
            })[0]
        ).to.match(/20/);
        const circle: Record<string, unknown> = {};
        circle['self'] = circle;
        expect(faultsOf(handler({ circle })).length).to.equal(1);
        expect(faultsOf(handler({ n: 1n })).length).to.equal(1);
    });
});

describe('EngineService.fragments', { timeout: 60_000 }, () => {
    let rig: Rig;
    let upstream: TestUpstream;
    const get = (host: string): Promise<{ readonly status: number; readonly guarded: string | null }> =>
        new Promise((resolve, reject) => {
            ask({ host: '127.0.0.1', port: rig.port, headers: { host }, agent: false }, (answer) => {
                answer.resume();
                resolve({
                    status: answer.statusCode ?? 0,
                    guarded: (answer.headers['x-guarded'] as string | undefined) ?? null
                });
            }).on('error', reject);
        });

    before(async () => {
        upstream = await startUpstream('up');
        rig = await realRig();
        await rig.engine.change(
            creates({ domain: 'a.test', upstreams: [{ address: upstream.address, weight: 1 }] })
        );
    });
    after(async () => {
        await rig.close();
        await upstream.close();
    });

    it('puts a fragment in front of every host that is served, by one revision, and costs nothing a second time', async () => {
        expect((await get('a.test')).guarded).to.be.null();
        const outcome = await rig.engine.fragments.put('waf', [header('one')]);
        expect(outcome).to.include({ applied: true, reloaded: true });
        expect(await get('a.test')).to.equal({ status: 200, guarded: 'one' });
        expect(await get('unknown.test')).to.equal({ status: 404, guarded: null });
        expect(await rig.engine.fragments.put('waf', [header('one')])).to.be.null();
        const [newest] = rig.engine.revisions({ before: null, limit: 1 }).rows;
        expect([newest?.number, newest?.by.map(({ plugin }) => plugin)]).to.equal([
            outcome?.revision,
            ['waf']
        ]);
        expect(rig.engine.revision(newest?.number ?? 0).settings.fragments).to.equal({
            waf: { handlers: header('one').handlers, apps: {} }
        });
    });

    it('keeps it through other changes, a restore of a time before it, and a restart of the panel', async () => {
        await rig.engine.change(updates(1, { domain: 'a.test', aliases: ['b.test'] }));
        expect((await get('b.test')).guarded).to.equal('one');
        await rig.engine.restore(1, callOf(person('admin', ['hosts:write', 'settings:write'])));
        expect(await get('a.test')).to.equal({ status: 200, guarded: 'one' });
        expect((await get('b.test')).status).to.equal(404);
        const { loads } = await rig.engine.status();
        await rig.reboot();
        expect((await rig.engine.status()).configuration.wanted).to.equal(
            (await rig.engine.status()).configuration.running ?? ''
        );
        expect((await rig.engine.status()).loads <= loads).to.be.true();
        expect((await get('a.test')).guarded).to.equal('one');
        expect(Object.keys(rig.engine.fragments.all())).to.equal(['waf']);
    });

    it('refuses what the engine refuses, and leaves the last good one', async () => {
        const { revision } = await rig.engine.status();
        const refused = await failureOf(
            rig.engine.fragments.put('waf', [{ slot: 'handlers', handlers: [{ handler: 'waf' }] }])
        );
        expect([refused.code, refused.reason]).to.equal([42200, 'ENGINE_REJECTED']);
        expect(
            (
                await failureOf(
                    rig.engine.fragments.put('waf', [{ slot: 'apps', name: 'crowdsec', config: {} }])
                )
            ).code
        ).to.equal(42200);
        expect(
            (
                await failureOf(
                    rig.engine.fragments.put('waf', [
                        { slot: 'handlers', handlers: [{ handler: 'file_server' }] }
                    ])
                )
            ).code
        ).to.equal(40001);
        expect((await rig.engine.status()).revision).to.equal(revision);
        expect((await get('a.test')).guarded).to.equal('one');
        expect(
            rig.store.db.prepare<[], { plugin: string }>('select plugin from engine_fragment').all()
        ).to.equal([{ plugin: 'waf' }]);
    });

    it('keeps those of several plugins apart, in the order of their names, and says what went', async () => {
        await rig.engine.fragments.put('a-first', [
            {
                slot: 'handlers',
                handlers: [
                    { handler: 'headers', response: { set: { 'X-Guarded': ['zero'] }, deferred: false } }
                ]
            }
        ]);
        expect(['zero', 'one']).to.include(String((await get('a.test')).guarded));
        expect(await rig.engine.fragments.drop('a-first')).to.equal(['handlers']);
        expect(await rig.engine.fragments.drop('a-first')).to.equal([]);
        expect((await get('a.test')).guarded).to.equal('one');
        expect(await rig.engine.fragments.drop('waf')).to.equal(['handlers']);
        expect((await get('a.test')).guarded).to.be.null();
        await rig.reboot();
        expect(rig.engine.fragments.all()).to.equal({});
        expect((await get('a.test')).guarded).to.be.null();
    });

    it('keeps secrets of a fragment out of the database', async () => {
        await rig.engine.fragments.put('waf', [
            {
                slot: 'handlers',
                handlers: [{ handler: 'headers', response: { set: { 'X-Guarded': ['a-secret-key'] } } }]
            }
        ]);
        const rows = [
            ...rig.store.db.prepare<[], object>('select * from engine_fragment').all(),
            ...rig.store.db.prepare<[], object>('select * from engine_revision').all(),
            ...rig.store.db.prepare<[], object>('select * from engine_state').all()
        ];
        expect(JSON.stringify(rows)).to.not.contain('a-secret-key');
        await rig.engine.fragments.drop('waf');
    });
});

describe('EngineService.fragments of an engine in trouble', () => {
    let rig: Awaited<ReturnType<typeof faultyRig>>;

    afterEach(() => rig.close());

    it('waits while changes wait, and is there at the next load', async () => {
        rig = await faultyRig();
        rig.state.autoReload = false;
        expect(await rig.engine.fragments.put('waf', [header('later')])).to.include({ applied: false });
        expect(JSON.stringify(await rig.driver.config())).to.not.contain('X-Guarded');
        await rig.reboot();
        expect(Object.keys(rig.engine.fragments.all())).to.equal(['waf']);
        expect(JSON.stringify(await rig.driver.config())).to.not.contain('X-Guarded');
        rig.state.autoReload = true;
        await rig.engine.catchUp();
        expect(JSON.stringify(await rig.driver.config())).to.contain('X-Guarded');
    });

    it('does not lose it to a change of settings', async () => {
        rig = await faultyRig();
        await rig.engine.fragments.put('waf', [header('kept')]);
        await rig.engine.change({
            plan: () => ({ settings: { ...rig.state.settings, acmeEmail: 'x@example.test' } }),
            commit: async () => null
        });
        expect(JSON.stringify(await rig.driver.config())).to.contain('X-Guarded');
        expect(Object.keys(rig.engine.fragments.all())).to.equal(['waf']);
    });

    it('refuses an app that another plugin has given', async () => {
        rig = await faultyRig();
        await rig.engine.fragments.put('one', [{ slot: 'apps', name: 'crowdsec', config: {} }]);
        expect(
            (
                await failureOf(
                    rig.engine.fragments.put('two', [{ slot: 'apps', name: 'crowdsec', config: {} }])
                )
            ).code
        ).to.equal(40900);
        expect(Object.keys(rig.engine.fragments.all())).to.equal(['one']);
    });
});
