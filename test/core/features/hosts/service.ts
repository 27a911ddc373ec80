import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { verify } from '@node-rs/bcrypt';
import { createFailure, type FailureError, isFailure } from '@portico/sdk';
import type Joi from 'joi';

import type { HostChange } from '../../../../core/src/features/hosts/schema/bodies.ts';
import { type HostView, hostView } from '../../../../core/src/features/hosts/schema/view.ts';
import type { Call } from '../../../../core/src/platform/call.ts';
import { adminMay, createHostKit, type HostKit, operatorMay } from '../../../support/core/hosts.ts';
import { callOf, person } from '../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

let kit: HostKit;

beforeEach(async () => {
    kit = await createHostKit();
});

afterEach(async () => {
    await kit.close();
});

const as = (may: readonly string[], more: Partial<Call> = {}) => callOf(person('somebody', may), more);
const admin = (more: Partial<Call> = {}) => as(adminMay, more);
const operator = (more: Partial<Call> = {}) => as(operatorMay, more);

async function create(body: HostChange, call: Call = admin()): Promise<HostView> {
    return (await kit.hosts.create(body, call)).data;
}

async function refused(work: Promise<unknown>): Promise<FailureError> {
    const thrown: unknown = await work.then(
        () => 'nothing was thrown',
        (error: unknown) => error
    );
    if (!isFailure(thrown)) {
        throw new Error('not refused by a failure', { cause: thrown });
    }
    return thrown;
}

/** Paths of every fault of a 40001. */
async function faults(work: Promise<unknown>): Promise<readonly string[]> {
    const failure = await refused(work);
    expect(failure.reason, failure.message).to.equal('VALIDATION_FAILED');
    return (failure.data?.['errors'] as { path: string }[]).map(({ path }) => path);
}

const proxy = (domain: string, more: HostChange = {}): HostChange => ({
    domain,
    upstream: '10.0.0.1:8080',
    ...more
});
const listed = (query: Parameters<HostKit['hosts']['page']>[0] = { sort: 'id' }): HostView[] =>
    JSON.parse(kit.hosts.page(query).json()) as HostView[];
const storedRows = (): unknown[] =>
    kit.store.db.prepare('select id, version, applied, document, site from host').all();

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
        expect(
            (hostView as unknown as Joi.Schema).validate(answer.data, { convert: false }).error
        ).to.be.undefined();
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

describe('basicAuth', () => {
    const withUsers = (...basicAuth: { username: string; password?: string }[]): HostChange => ({
        access: { basicAuth }
    });
    const hashes = (): Map<string, string> =>
        new Map(
            kit.engine
                .draft()
                .hosts.get(1)
                ?.site.access.basicAuth.map(({ username, hash }) => [username, hash])
        );

    it('hashes passwords, and never shows or records them', async () => {
        const call = admin();
        const host = await create(
            proxy('a.test', withUsers({ username: 'ann', password: 'canary-secret-1' })),
            call
        );
        expect(host.access.basicAuth).to.equal([{ username: 'ann' }]);
        const hash = hashes().get('ann') ?? '';
        expect(hash).to.match(/^\$2[aby]\$10\$/);
        expect(await verify('canary-secret-1', hash)).to.be.true();
        for (const text of [
            JSON.stringify(call.done),
            JSON.stringify(listed()),
            JSON.stringify(storedRows()),
            kit.store.lines.join('')
        ]) {
            expect(text).to.not.contain('canary-secret-1');
        }
        expect(JSON.stringify(call.done) + JSON.stringify(listed())).to.not.contain(hash);
    });

    it('keeps the hash of a user that is sent without password', async () => {
        await create(
            proxy(
                'a.test',
                withUsers({ username: 'ann', password: 'one' }, { username: 'bob', password: 'two' })
            )
        );
        const [ann, bob] = [hashes().get('ann'), hashes().get('bob')];
        await kit.hosts.update(
            1,
            withUsers({ username: 'bob', password: 'three' }, { username: 'ann' }),
            admin()
        );
        expect(hashes().get('ann')).to.equal(ann);
        expect(hashes().get('bob')).to.not.equal(bob);
        expect([...hashes().keys()]).to.equal(['bob', 'ann']);
    });

    it('refuses a new user without password, a repeated one, and passwords that bcrypt would cut', async () => {
        await create(proxy('a.test', withUsers({ username: 'ann', password: 'one' })));
        for (const users of [
            [{ username: 'eve' }],
            [{ username: 'ann' }, { username: 'ann' }],
            [{ username: 'a:b', password: 'x' }],
            [{ username: 'ann', password: 'ü'.repeat(37) }],
            [{ username: 'ann', password: 'a\u0000b' }]
        ]) {
            expect((await faults(kit.hosts.update(1, withUsers(...users), admin())))[0]).to.match(
                /^access\.basicAuth\./
            );
        }
        expect(kit.hosts.get(1).version).to.equal(1);
    });

    it('copies the hashes to a clone, and hides passwords from plugins', async () => {
        await create(proxy('a.test', withUsers({ username: 'ann', password: 'one' })));
        await kit.hosts.clone(1, 'b.test', admin());
        expect(kit.engine.draft().hosts.get(2)?.site.access.basicAuth[0]?.hash).to.equal(hashes().get('ann'));
        let seen = '';
        kit.hooks.current = {
            async beforeSave(_before, body) {
                seen = JSON.stringify(body);
                return { ...body, notes: 'by a plugin' };
            }
        };
        const host = (
            await kit.hosts.update(1, withUsers({ username: 'ann', password: 'canary-secret-2' }), admin())
        ).data;
        expect(seen).to.contain('ann').and.not.contain('canary');
        expect(host.notes).to.equal('by a plugin');
        expect(await verify('canary-secret-2', hashes().get('ann') ?? '')).to.be.true();
    });
});

describe('update', () => {
    it('keeps what is not sent, clears with null, replaces arrays whole, and ignores what is only read', async () => {
        const first = await create(
            proxy('a.test', {
                aliases: ['b.test', 'c.test'],
                notes: 'kept',
                timeouts: { connectSeconds: 5 },
                bodyLimitBytes: 10
            })
        );
        kit.clock.time += 1000;
        const { data } = await kit.hosts.update(
            1,
            {
                aliases: ['c.test'],
                bodyLimitBytes: null,
                id: 77,
                owner: 'x',
                state: 'error',
                createdAt: 'never'
            },
            admin()
        );
        expect(data).to.equal({
            ...first,
            aliases: ['c.test'],
            bodyLimitBytes: null,
            version: 2,
            updatedAt: data.updatedAt
        });
        expect(data.updatedAt > first.updatedAt).to.be.true();
        await create(proxy('b.test'));
    });

    it('takes back what it answered, and then changes nothing', async () => {
        await create(
            proxy('a.test', {
                ssl: true,
                sslMode: 'internal',
                hsts: true,
                access: { basicAuth: [{ username: 'ann', password: 'x' }] },
                healthCheck: { path: '/up' },
                cors: { origins: ['*'] },
                locations: [{ path: '/api/', upstream: 'http://api:1' }]
            })
        );
        const read = kit.hosts.get(1);
        const { data, headers } = await kit.hosts.update(1, read, admin());
        expect(data).to.equal(read);
        expect(headers).to.equal({ 'x-engine-reload': 'false', etag: '"1"' });
    });

    it('replaces the list by upstream alone', async () => {
        await create({ domain: 'a.test', upstreams: [{ address: 'a:1' }, { address: 'b:1' }] });
        expect((await kit.hosts.update(1, { upstream: 'c:1' }, admin())).data.upstreams).to.equal([
            { address: 'c:1', weight: 1 }
        ]);
    });

    it('clears the fields of the old type', async () => {
        await create(
            proxy('a.test', {
                loadBalancing: { policy: 'first' },
                healthCheck: { path: '/' },
                locations: [{ path: '/a', upstream: 'a:1' }],
                timeouts: { readSeconds: 3 }
            })
        );
        const { data } = await kit.hosts.update(
            1,
            { type: 'redirect', redirect: { to: 'https://b.test' } },
            admin()
        );
        expect(data).to.include({
            type: 'redirect',
            upstream: null,
            upstreams: [],
            loadBalancing: null,
            healthCheck: null,
            locations: [],
            timeouts: null,
            redirect: { to: 'https://b.test', code: 308, keepPath: true }
        });
        expect(await faults(kit.hosts.update(1, { type: 'proxy' }, admin()))).to.equal(['upstream']);
    });

    it('lets forceHttps follow ssl unless it is said', async () => {
        await create(proxy('a.test', { sslMode: 'internal' }));
        expect((await kit.hosts.update(1, { ssl: true, hsts: true }, admin())).data).to.include({
            forceHttps: true,
            hsts: true
        });
        expect((await kit.hosts.update(1, { forceHttps: false }, admin())).data.forceHttps).to.be.false();
        expect((await kit.hosts.update(1, { ssl: false }, admin())).data).to.include({
            forceHttps: false,
            hsts: false
        });
    });

    it('refuses a stale version in If-Match or in the body, with the present one', async () => {
        await create(proxy('a.test'));
        await kit.hosts.update(1, { notes: 'two' }, admin({ ifMatch: '1' }));
        for (const work of [
            kit.hosts.update(1, { notes: 'x' }, admin({ ifMatch: '1' })),
            kit.hosts.update(1, { notes: 'x', version: 1 }, admin()),
            kit.hosts.update(1, { notes: 'x' }, admin({ ifMatch: 'W/"2' })),
            kit.hosts.remove(1, admin({ ifMatch: '1' }))
        ]) {
            const failure = await refused(work);
            expect([failure.code, failure.data?.['version']]).to.equal([41200, 2]);
        }
        expect(kit.hosts.get(1).notes).to.equal('two');
        await kit.hosts.update(1, { notes: 'any' }, admin({ ifMatch: '*' }));
    });

    it('lets one of several updates of the same version win', async () => {
        await create(proxy('a.test'));
        const outcomes = await Promise.allSettled(
            ['x', 'y', 'z'].map((notes) => kit.hosts.update(1, { notes }, admin({ ifMatch: '1' })))
        );
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        for (const outcome of outcomes) {
            if (outcome.status === 'rejected') {
                expect((outcome.reason as FailureError).data).to.equal({ version: 2 });
            }
        }
    });

    it('loses none of several updates without a version', async () => {
        await create(proxy('a.test'));
        await Promise.all([
            kit.hosts.update(1, { notes: 'x' }, admin()),
            kit.hosts.update(1, { tags: ['y'] }, admin()),
            kit.hosts.update(1, { compression: true }, admin()),
            kit.hosts.update(1, { aliases: ['b.test'] }, admin())
        ]);
        expect(kit.hosts.get(1)).to.include({
            notes: 'x',
            tags: ['y'],
            compression: true,
            aliases: ['b.test'],
            version: 5
        });
    });

    it('answers 40400 for a host that is not there', async () => {
        for (const work of [
            kit.hosts.update(9, {}, admin()),
            kit.hosts.remove(9, admin()),
            kit.hosts.clone(9, 'a.test', admin()),
            kit.hosts.check(9, admin())
        ]) {
            expect((await refused(work)).code).to.equal(40400);
        }
    });
});

describe('hosts:unsafe', () => {
    const root = (): string => {
        const folder = join(kit.store.folder, 'www');
        mkdirSync(folder, { recursive: true });
        return folder;
    };

    it('is needed to set what reaches the machine', async () => {
        const bodies: HostChange[] = [
            proxy('a.test', { advanced: [{ handler: 'headers' }] }),
            { domain: 'a.test', type: 'static', static: { root: root() } },
            { domain: 'a.test', type: 'php', php: { root: root(), fastcgi: '10.0.0.1:9000' } },
            {
                domain: 'a.test',
                type: 'php',
                php: { root: root(), upstreams: [{ address: '10.0.0.1:9000' }] }
            },
            { domain: 'a.test', upstream: 'unix//run/app.sock' },
            proxy('a.test', { locations: [{ path: '/a', upstream: 'unix//run/app.sock' }] }),
            proxy('a.test', { headers: { request: [{ op: 'set', name: 'hOST', value: 'b.test' }] } }),
            ...[
                '169.254.169.254:80',
                'http://[::ffff:169.254.169.254]:80',
                '[64:ff9b::a9fe:a9fe]:80',
                '[fe80::1]:80',
                'http://metadata.google.internal'
            ].map((address): HostChange => ({ domain: 'a.test', upstream: address })),
            proxy('a.test', { locations: [{ path: '/a', upstream: '100.100.100.200:80' }] }),
            proxy('a.test', { access: { forwardAuth: { url: 'http://169.254.169.254/latest' } } })
        ];
        for (const body of bodies) {
            for (const work of [kit.hosts.create(body, operator()), kit.hosts.validate(body, operator())]) {
                const failure = await refused(work);
                expect([failure.code, failure.data?.['permission']], JSON.stringify(body)).to.equal([
                    40300,
                    'hosts:unsafe'
                ]);
            }
            const { id } = await create(body);
            await kit.hosts.remove(id, admin());
        }
    });

    it('is not needed to change anything else of such a host, but to change or take away the part itself', async () => {
        await create(
            proxy('a.test', {
                advanced: [{ handler: 'headers' }],
                headers: { request: [{ op: 'set', name: 'Host', value: 'x' }] }
            })
        );
        await kit.hosts.update(
            1,
            { notes: 'mine', upstream: '10.0.0.2:80', advanced: [{ handler: 'headers' }] },
            operator()
        );
        await kit.hosts.batch({ ids: [1], action: 'disable' }, operator());
        for (const body of [
            { advanced: null },
            { headers: null },
            { headers: { request: [{ op: 'set', name: 'Host', value: 'y' }] } },
            { upstream: 'unix//run/x' }
        ] as HostChange[]) {
            expect((await refused(kit.hosts.update(1, body, operator()))).code).to.equal(40300);
        }
        expect((await refused(kit.hosts.clone(1, 'b.test', operator()))).code).to.equal(40300);
        expect(kit.hosts.get(1).version).to.equal(3);

        const php = (weight: number): HostChange => ({
            php: {
                root: root(),
                upstreams: [{ address: '10.0.0.1:9000' }, { address: '10.0.0.2:9000', weight }]
            }
        });
        const { id } = await create({ domain: 'php.test', type: 'php', ...php(1) });
        await kit.hosts.update(id, { notes: 'mine', ...php(1) }, operator());
        expect((await refused(kit.hosts.update(id, php(2), operator()))).code).to.equal(40300);
    });

    it('is needed to open a host that has such a part to more visitors', async () => {
        const { id } = await create(
            proxy('a.test', {
                advanced: [{ handler: 'headers' }],
                ssl: true,
                sslMode: 'internal',
                forceHttps: true,
                access: {
                    allow: ['10.0.0.0/8'],
                    basicAuth: [{ username: 'ann', password: 'a long password' }]
                }
            })
        );
        for (const body of [
            { aliases: ['b.test'] },
            { forceHttps: false },
            { access: null },
            { access: { allow: ['0.0.0.0/0'], basicAuth: [{ username: 'ann' }] } },
            {
                access: {
                    allow: ['10.0.0.0/8'],
                    basicAuth: [{ username: 'ann', password: 'their own word' }]
                }
            },
            { cors: { origins: ['https://evil.test'] } }
        ] as HostChange[]) {
            expect(
                (await refused(kit.hosts.update(id, body, operator()))).code,
                JSON.stringify(body)
            ).to.equal(40300);
        }
        await kit.hosts.update(
            id,
            { tags: ['x'], access: { allow: ['10.0.0.0/8'], basicAuth: [{ username: 'ann' }] } },
            operator()
        );
        const plain = await create(proxy('plain.test', { access: { allow: ['10.0.0.0/8'] } }));
        await kit.hosts.update(plain.id, { aliases: ['c.test'], access: null }, operator());
    });

    it("does not open the panel's and the engine's own places to any user", async () => {
        const link = join(root(), 'link');
        symlinkSync(kit.folders.runtime, link);
        for (const [body, path] of [
            [
                { domain: 'a.test', type: 'static', static: { root: join(kit.store.folder, 'data') } },
                'static.root'
            ],
            [{ domain: 'a.test', type: 'static', static: { root: link } }, 'static.root'],
            [{ domain: 'a.test', type: 'static', static: { root: `${link}/` } }, 'static.root'],
            [{ domain: 'a.test', type: 'static', static: { root: '/' } }, 'static.root'],
            [{ domain: 'a.test', type: 'static', static: { root: `${root()}/../data` } }, 'static.root'],
            [
                { domain: 'a.test', type: 'php', php: { root: kit.folders.persistent, fastcgi: 'a:1' } },
                'php.root'
            ],
            [
                {
                    domain: 'a.test',
                    type: 'php',
                    php: { root: root(), fastcgi: `unix/${kit.folders.adminSocket}` }
                },
                'php.fastcgi'
            ],
            [
                {
                    domain: 'a.test',
                    type: 'php',
                    php: {
                        root: root(),
                        upstreams: [
                            { address: 'unix//run/php.sock' },
                            { address: `unix/${kit.folders.adminSocket}` }
                        ]
                    }
                },
                'php.upstreams.1.address'
            ],
            [{ domain: 'a.test', upstream: `unix/${kit.folders.adminSocket}` }, 'upstreams.0.address'],
            [{ domain: 'a.test', upstream: `unix/${link}/admin/admin.sock` }, 'upstreams.0.address'],
            [{ domain: 'a.test', upstream: 'unix//proc/self/cwd/x' }, 'upstreams.0.address'],
            [
                proxy('a.test', { locations: [{ path: '/x', upstream: `unix/${kit.folders.adminSocket}` }] }),
                'locations.0.upstream'
            ],
            [
                proxy('a.test', {
                    advanced: [
                        {
                            handler: 'subroute',
                            routes: [{ handle: [{ handler: 'file_server', root: kit.folders.storage }] }]
                        }
                    ]
                }),
                'advanced.0.routes.0.handle.0.root'
            ],
            [
                proxy('a.test', {
                    advanced: [
                        { handler: 'reverse_proxy', upstreams: [{ dial: `unix/${kit.folders.adminSocket}` }] }
                    ]
                }),
                'advanced.0.upstreams.0.dial'
            ],
            [
                proxy('a.test', {
                    advanced: [{ handler: 'reverse_proxy', upstreams: [{ dial: 'localhost:18080' }] }]
                }),
                'advanced.0.upstreams.0.dial'
            ]
        ] as [HostChange, string][]) {
            expect(await faults(kit.hosts.create(body, admin())), JSON.stringify(body)).to.include(path);
        }
        expect(storedRows()).to.equal([]);
        rmSync(link);
    });

    it("does not let a host send to the engine's own listeners", async () => {
        for (const host of [
            '127.0.0.1',
            'localhost',
            '[::1]',
            '0.0.0.0',
            '[::]',
            '127.9.9.9',
            '[::ffff:127.0.0.1]',
            'LOCALHOST',
            'x.localhost',
            '192.0.2.1',
            'a.test'
        ]) {
            expect(
                await faults(kit.hosts.create({ domain: 'a.test', upstream: `${host}:18080` }, admin())),
                host
            ).to.equal(['upstreams.0.address']);
            expect(
                await faults(
                    kit.hosts.create(
                        proxy('a.test', { access: { forwardAuth: { url: `http://${host}:18443/x` } } }),
                        admin()
                    )
                ),
                host
            ).to.equal(['access.forwardAuth.url']);
        }
        await create({ domain: 'a.test', upstream: '127.0.0.1:18081' });
    });

    it('says why a folder cannot be served', async () => {
        const failure = await refused(
            kit.hosts.create(
                { domain: 'a.test', type: 'static', static: { root: '/srv/absent-folder' } },
                admin()
            )
        );
        expect(JSON.stringify(failure.data)).to.contain('static.root').and.contain("engine's user (tester)");
    });
});

describe('remove and batch', () => {
    it('removes, and never gives the id to another', async () => {
        await create(proxy('a.test'));
        await create(proxy('b.test'));
        const call = admin();
        expect((await kit.hosts.remove(2, call)).data).to.be.null();
        expect(call.done[0]).to.include({ action: 'delete', resourceId: 2, after: null });
        expect((await create(proxy('b.test'))).id).to.equal(3);
        expect(listed().map(({ id }) => id)).to.equal([1, 3]);
    });

    it('switches several in one apply, and answers them', async () => {
        await create(proxy('a.test'));
        await create(proxy('b.test'));
        const call = admin();
        const { data } = await kit.hosts.batch({ ids: [2, 1], action: 'disable' }, call);
        expect(data?.map(({ id, state, version }) => [id, state, version])).to.equal([
            [2, 'disabled', 2],
            [1, 'disabled', 2]
        ]);
        expect(call.done).to.have.length(1);
        expect(data).to.equal([kit.hosts.get(2), kit.hosts.get(1)]);
        expect(kit.engine.revisions({ before: null, limit: 1 }).rows[0]?.number).to.equal(3);
        expect((await kit.hosts.batch({ ids: [1, 2], action: 'delete' }, admin())).data).to.be.null();
        expect(storedRows()).to.equal([]);
    });

    it('does all or nothing', async () => {
        await create(proxy('a.test'));
        const failure = await refused(kit.hosts.batch({ ids: [1, 7, 8], action: 'delete' }, admin()));
        expect([failure.code, failure.data?.['ids']]).to.equal([40400, [7, 8]]);
        expect(await faults(kit.hosts.batch({ ids: [1, 1], action: 'delete' }, admin()))).to.equal(['ids.1']);
        kit.hooks.current = {
            guard: async (before) =>
                Promise.reject(
                    createFailure({
                        code: 40920,
                        reason: 'REFUSED_BY_PLUGIN',
                        message: `not ${before?.domain}`,
                        data: null
                    })
                )
        };
        expect((await refused(kit.hosts.batch({ ids: [1], action: 'delete' }, admin()))).code).to.equal(
            40920
        );
        expect(storedRows()).to.have.length(1);
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
