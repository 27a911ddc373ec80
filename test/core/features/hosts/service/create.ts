import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createFailure, type FailureError } from '@portico/sdk';

import type { HostChange } from '../../../../../core/src/features/hosts/schema/bodies.ts';
import { type HostView, hostView } from '../../../../../core/src/features/hosts/schema/view.ts';
import type { Call } from '../../../../../core/src/platform/call.ts';
import {
    admin,
    faults,
    listedIn,
    operator,
    proxy,
    refused,
    rowsIn
} from '../../../../support/core/host-calls.ts';
import { adminMay, createHostKit, type HostKit } from '../../../../support/core/hosts.ts';
import { callOf, person } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

let kit: HostKit;

beforeEach(async () => {
    kit = await createHostKit();
});

afterEach(async () => {
    await kit.close();
});

async function create(body: HostChange, call: Call = admin()): Promise<HostView> {
    return (await kit.hosts.create(body, call)).data;
}

const listed = (query: Parameters<HostKit['hosts']['page']>[0] = { sort: 'id' }): HostView[] =>
    listedIn(kit, query);

const storedRows = (): unknown[] => rowsIn(kit);

describe('create', () => {
    it('answers 201 with what GET and the list then answer, and puts it on record', async () => {
        const call = admin();
        const answer = await kit.hosts.create(
            proxy('Shop.Example', { aliases: ['www.shop.example'], tags: ['shop'], notes: 'ü' }),
            call
        );
        expect(answer.status).to.equal(201);
        expect(answer.headers).to.equal({ 'x-engine-reload': 'true', location: '/api/hosts/1', etag: '"1"' });
        expect(answer.data).to.include({
            id: 1,
            domain: 'shop.example',
            upstream: '10.0.0.1:8080',
            upstreams: [{ address: '10.0.0.1:8080', weight: 1 }],
            enabled: true,
            ssl: false,
            forceHttps: false,
            owner: null,
            version: 1,
            state: 'applied',
            stateMessage: null
        });
        expect(kit.hosts.get(1)).to.equal(answer.data);
        expect(listed()).to.equal([answer.data]);
        expect(hostView.validate(answer.data, { convert: false }).error).to.be.undefined();
        expect(call.done).to.have.length(1);
        expect(call.done[0]).to.include({
            action: 'create',
            resource: 'hosts',
            resourceId: 1,
            before: null,
            after: answer.data
        });
        expect(kit.driver.running).to.not.be.null();
    });

    it('says that a second host of a known kind needs no reload', async () => {
        await create(proxy('a.test'));
        const second = await kit.hosts.create(proxy('b.test'), admin());
        expect(second.headers['x-engine-reload']).to.equal('false');
    });

    it('refuses a name that any host has, as domain or alias, in any letter case', async () => {
        await create(proxy('a.test', { aliases: ['b.test'] }));
        for (const [body, field] of [
            [proxy('A.TEST'), 'domain'],
            [proxy('b.test'), 'domain'],
            [proxy('c.test', { aliases: ['x.test', 'A.test'] }), 'aliases.1']
        ] as const) {
            const failure = await refused(kit.hosts.create(body, admin()));
            expect([failure.code, failure.data?.['field']]).to.equal([40900, field]);
        }
        expect(storedRows()).to.have.length(1);
    });

    it('lets one of two parallel creations of a name win', async () => {
        const outcomes = await Promise.allSettled(
            [1, 2, 3].map(() => kit.hosts.create(proxy('a.test'), admin()))
        );
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        for (const outcome of outcomes) {
            if (outcome.status === 'rejected') {
                expect((outcome.reason as FailureError).code).to.equal(40900);
            }
        }
        expect(storedRows()).to.have.length(1);
    });

    it('reports every fault at once', async () => {
        expect(
            await faults(
                kit.hosts.create(
                    {
                        domain: '127.0.0.1',
                        aliases: ['a..b'],
                        upstream: 'x',
                        access: { allow: ['y'] },
                        locations: [{ path: 'z', upstream: 'x' }],
                        ssl: false,
                        forceHttps: true
                    },
                    admin()
                )
            )
        ).to.include([
            'domain',
            'aliases.0',
            'upstream',
            'access.allow.0',
            'locations.0.path',
            'locations.0.upstream',
            'forceHttps'
        ]);
        expect(storedRows()).to.equal([]);
    });

    it('refuses fields of another type, and a type without its own', async () => {
        expect(
            await faults(
                kit.hosts.create(
                    {
                        domain: 'a.test',
                        type: 'redirect',
                        upstream: 'a:1',
                        locations: [{ path: '/a', upstream: 'a:1' }]
                    },
                    admin()
                )
            )
        ).to.equal(['upstream', 'locations', 'redirect']);
        expect(
            await faults(
                kit.hosts.create(
                    {
                        domain: 'a.test',
                        upstream: 'a:1',
                        redirect: { to: 'https://b.test' },
                        php: { root: '/srv', fastcgi: 'a:9000' }
                    },
                    admin()
                )
            )
        ).to.equal(['redirect', 'php']);
        expect(await faults(kit.hosts.create({ domain: 'a.test' }, admin()))).to.equal(['upstream']);
    });

    it('takes upstream and upstreams when they agree', async () => {
        const host = await create({
            domain: 'a.test',
            upstream: 'B:1',
            upstreams: [{ address: 'b:1' }, { address: 'c:1', weight: 3 }]
        });
        expect(host.upstreams).to.equal([
            { address: 'b:1', weight: 1 },
            { address: 'c:1', weight: 3 }
        ]);
        expect(
            await faults(
                kit.hosts.create(
                    {
                        domain: 'b.test',
                        upstream: 'c:1',
                        upstreams: [{ address: 'b:1' }, { address: 'c:1' }]
                    },
                    admin()
                )
            )
        ).to.equal(['upstream']);
        expect(
            await faults(
                kit.hosts.create(
                    { domain: 'b.test', upstreams: [{ address: 'https://b:1' }, { address: 'c:1' }] },
                    admin()
                )
            )
        ).to.include('upstreams');
    });

    it('takes every balancing policy, with a key of its own where one is needed', async () => {
        for (const policy of [
            'round_robin',
            'least_conn',
            'ip_hash',
            'first',
            'random',
            'header',
            'cookie',
            'weighted'
        ] as const) {
            const host = await create(
                proxy(`${policy.replace('_', '-')}.test`, {
                    loadBalancing: { policy, retries: 1, tryDurationSeconds: 5 }
                })
            );
            expect(host.loadBalancing?.key === null).to.equal(policy !== 'header' && policy !== 'cookie');
        }
    });

    it('tells what to do instead of ACME for a wildcard name', async () => {
        const failure = await refused(kit.hosts.create(proxy('*.a.test', { ssl: true }), admin()));
        expect(JSON.stringify(failure.data)).to.match(/POST \/api\/certificates/);
        expect((await create(proxy('*.a.test', { ssl: true, sslMode: 'internal' }))).forceHttps).to.be.true();
    });

    it('refuses placeholders of the engine', async () => {
        expect(
            await faults(
                kit.hosts.create(
                    proxy('a.test', { advanced: [{ handler: 'static_response', body: '{env.SECRET}' }] }),
                    admin()
                )
            )
        ).to.have.length(1);
    });

    it('keeps nothing when the engine refuses, and passes its message on', async () => {
        await create(proxy('a.test'));
        const before = storedRows();
        kit.driver.judge((config) => (JSON.stringify(config).includes('X-Broken') ? 'no such thing' : null));
        const call = admin();
        const failure = await refused(
            kit.hosts.create(
                proxy('b.test', { headers: { response: [{ op: 'set', name: 'X-Broken', value: '1' }] } }),
                call
            )
        );
        expect([failure.code, failure.data?.['engine']]).to.equal([42200, 'no such thing']);
        expect(storedRows()).to.equal(before);
        expect(call.done).to.equal([]);
        expect(kit.hosts.get(1).state).to.equal('applied');
    });

    it('saves as pending when automatic reload is off, and answers what GET answers', async () => {
        await create(proxy('a.test'));
        kit.settings.autoReload = false;
        const answer = await kit.hosts.create(proxy('b.test', { compression: true }), admin());
        expect([answer.data.state, answer.headers['x-engine-reload']]).to.equal(['pending', 'true']);
        expect(kit.hosts.get(answer.data.id)).to.equal(answer.data);
        expect(listed({ state: 'pending', sort: 'id' })).to.equal([answer.data]);
        expect(await kit.rows.unapplied()).to.equal([answer.data.id]);
    });

    it('saves nothing when the engine should run and does not answer', async () => {
        kit.driver.crash('gone');
        const failure = await refused(kit.hosts.create(proxy('a.test'), admin()));
        expect(failure.code).to.equal(50301);
        expect(storedRows()).to.equal([]);
    });
});

describe('hooks', () => {
    it('guards every way of saving, and tells what changed afterwards', async () => {
        const told: (readonly [string | undefined, string | undefined])[] = [];
        kit.hooks.current = { afterChange: (before, after) => told.push([before?.notes, after?.notes]) };
        await create(proxy('a.test', { notes: 'one' }));
        await kit.hosts.update(1, { notes: 'two' }, admin());
        kit.hooks.current.guard = async () =>
            Promise.reject(
                createFailure({
                    code: 40920,
                    reason: 'REFUSED_BY_PLUGIN',
                    message: 'no',
                    data: { plugin: 'x' }
                })
            );
        for (const work of [
            kit.hosts.create(proxy('b.test'), admin()),
            kit.hosts.validate(proxy('b.test'), admin()),
            kit.hosts.update(1, { notes: 'x' }, admin()),
            kit.hosts.remove(1, admin()),
            kit.hosts.clone(1, 'c.test', admin())
        ]) {
            expect((await refused(work)).code).to.equal(40920);
        }
        kit.hooks.current.guard = async () => undefined;
        await kit.hosts.remove(1, admin());
        expect(told).to.equal([
            [undefined, 'one'],
            ['one', 'two'],
            ['two', undefined]
        ]);
    });

    it('validates what a plugin makes of a body', async () => {
        kit.hooks.current = { beforeSave: async (_before, body) => ({ ...body, sssl: true }) as HostChange };
        expect(await faults(kit.hosts.create(proxy('a.test'), admin()))).to.equal(['sssl']);
    });

    it('may write to the database after a change', async () => {
        let wrote: Promise<unknown> = Promise.resolve();
        kit.hooks.current = { afterChange: () => void (wrote = kit.store.db.write(async () => 'written')) };
        await create(proxy('a.test'));
        expect(await wrote).to.equal('written');
    });
});

describe('validate', () => {
    it('answers as create would, and changes nothing', async () => {
        expect(await kit.hosts.validate(proxy('a.test'), admin())).to.equal({ reload: true });
        await create(proxy('a.test'));
        expect(await kit.hosts.validate(proxy('b.test'), admin())).to.equal({ reload: false });
        expect((await refused(kit.hosts.validate(proxy('a.test'), admin()))).code).to.equal(40900);
        expect(storedRows()).to.have.length(1);
        expect((await create(proxy('b.test'))).id).to.equal(2);
    });
});

describe('preview', () => {
    it('masks what not every user may see', async () => {
        await create(
            proxy('a.test', {
                headers: { request: [{ op: 'set', name: 'X-Key', value: 'canary-value' }] },
                access: { basicAuth: [{ username: 'ann', password: 'x' }] }
            })
        );
        const [open, masked, stale] = [
            admin(),
            operator(),
            callOf(person('late', adminMay, { fresh: false }))
        ].map((call) => JSON.stringify(kit.hosts.preview(1, call)));
        expect(open).to.contain('canary-value');
        expect(masked).to.not.contain('canary-value').and.not.contain('$2');
        expect(stale).to.not.contain('canary-value');
    });
});

describe('check', () => {
    it('gives evidence and a remedy for each point, and never fails', async () => {
        await create({ domain: 'a.test', upstreams: [{ address: '127.0.0.1:1' }] });
        const items = await kit.hosts.check(1, admin());
        expect(items.map(({ id }) => id)).to.equal(['dns', 'address', 'engine', 'certificate', 'upstream']);
        expect(Object.fromEntries(items.map(({ id, ok }) => [id, ok]))).to.equal({
            dns: null,
            address: null,
            engine: false,
            certificate: null,
            upstream: false
        });
        expect(items.every(({ evidence }) => evidence.length > 0)).to.be.true();
    });
});
