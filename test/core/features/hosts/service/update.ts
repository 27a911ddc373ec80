import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { verify } from '@node-rs/bcrypt';
import { createFailure, type FailureError } from '@portico/sdk';

import type { HostChange } from '../../../../../core/src/features/hosts/schema/bodies.ts';
import type { HostView } from '../../../../../core/src/features/hosts/schema/view.ts';
import type { Call } from '../../../../../core/src/platform/call.ts';
import { admin, faults, listedIn, proxy, refused, rowsIn } from '../../../../support/core/host-calls.ts';
import { createHostKit, type HostKit } from '../../../../support/core/hosts.ts';

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
