import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { isFailure } from '@portico/sdk';

import { type HostQuery, hostQuery } from '../../../../core/src/features/hosts/schema/bodies.ts';
import type { HostView } from '../../../../core/src/features/hosts/schema/view.ts';
import { adminMay, createHostKit, type HostKit } from '../../../support/core/hosts.ts';
import { callOf, person } from '../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let kit: HostKit;
const admin = () => callOf(person('admin', adminMay));
const query = (more: object = {}): HostQuery => hostQuery.validate(more).value as HostQuery;
const domains = (more: object = {}): string[] =>
    (JSON.parse(kit.hosts.page(query(more)).json()) as HostView[]).map(({ domain }) => domain);

before(async () => {
    kit = await createHostKit();
    for (const [at, domain] of [
        'delta.test',
        'bücher.test',
        'alpha.test',
        'echo.test',
        'charlie.test'
    ].entries()) {
        kit.clock.time += 1000;
        await kit.hosts.create(
            {
                domain,
                upstream: `10.0.0.${at}:80`,
                tags: at % 2 === 0 ? ['even', 'a%b'] : ['odd'],
                notes: `Note ${at}`,
                enabled: at !== 3
            },
            admin()
        );
    }
    await kit.hosts.create(
        { domain: 'old.test', type: 'redirect', redirect: { to: 'https://alpha.test' } },
        admin()
    );
});

after(async () => {
    await kit.close();
});

describe('HostList', () => {
    it('filters on the server, by each filter and by several', () => {
        expect(domains({ type: 'redirect' })).to.equal(['old.test']);
        expect(domains({ enabled: false })).to.equal(['echo.test']);
        expect(domains({ state: 'disabled' })).to.equal(['echo.test']);
        expect(domains({ state: 'applied', tag: 'odd' })).to.equal(['xn--bcher-kva.test']);
        expect(domains({ tag: 'eve' })).to.equal([]);
        expect(domains({ q: 'NOTE 2' })).to.equal(['alpha.test']);
        expect(domains({ q: 'BÜCHER' })).to.equal(['xn--bcher-kva.test']);
        expect(domains({ q: '10.0.0.4' })).to.equal(['charlie.test']);
        expect(domains({ q: '%' })).to.equal(['delta.test', 'alpha.test', 'charlie.test']);
        expect(domains({ q: `' or 1=1 --` })).to.equal([]);
    });

    it('sorts both ways', () => {
        expect(domains({ sort: 'domain' })).to.equal([
            'alpha.test',
            'charlie.test',
            'delta.test',
            'echo.test',
            'old.test',
            'xn--bcher-kva.test'
        ]);
        expect(domains({ sort: '-createdAt' })[0]).to.equal('old.test');
        expect(domains({ sort: '-type' })[0]).to.equal('old.test');
    });

    it('pages by cursor in every order, and stays right while rows are added', async () => {
        for (const sort of ['id', '-id', 'domain', '-domain', 'type', '-type', 'createdAt', '-updatedAt']) {
            const whole = domains({ sort });
            const seen: string[] = [];
            let cursor: string | null = null;
            do {
                const page = kit.hosts.page(
                    query({ sort, limit: 2, ...(cursor === null ? {} : { cursor }) })
                );
                expect(page.total).to.equal(whole.length);
                seen.push(...(JSON.parse(page.json()) as HostView[]).map(({ domain }) => domain));
                cursor = page.next;
            } while (cursor !== null);
            expect(seen, sort).to.equal(whole);
        }
        const first = kit.hosts.page(query({ sort: 'domain', limit: 2 }));
        const { next } = first;
        const { data } = await kit.hosts.create({ domain: 'aaa.test', upstream: 'a:1' }, admin());
        expect(domains({ sort: 'domain', limit: 2, cursor: next })).to.equal(['delta.test', 'echo.test']);
        await kit.hosts.remove(data.id, admin());
    });

    it('refuses cursors of another order and text that is none', () => {
        const { next } = kit.hosts.page(query({ sort: 'domain', limit: 1 }));
        for (const bad of [
            { sort: 'id', cursor: next },
            { cursor: 'x' },
            { cursor: Buffer.from('["id","1",2]').toString('base64url') },
            { cursor: Buffer.from('null').toString('base64url') }
        ]) {
            let thrown: unknown;
            try {
                kit.hosts.page(query(bad));
            } catch (error) {
                thrown = error;
            }
            expect(isFailure(thrown) && thrown.code).to.equal(40001);
        }
    });

    it('keeps its tag while nothing changes, and changes it with every row and state', async () => {
        const tags = new Set<string>();
        const tag = (): string => kit.hosts.page(query()).tag;
        const fresh = (): void => {
            expect(tags.has(tag())).to.be.false();
            tags.add(tag());
        };
        fresh();
        expect(tags.has(tag())).to.be.true();
        await kit.hosts.update(1, { notes: 'changed' }, admin());
        fresh();
        kit.settings.autoReload = false;
        await kit.hosts.update(1, { compression: true }, admin());
        fresh();
        expect(domains({ state: 'pending' })).to.equal(['delta.test']);
        kit.driver.crash('it is gone');
        fresh();
        expect(domains({ state: 'error' })).to.not.be.empty();
        kit.driver.recover();
        kit.settings.autoReload = true;
    });

    it('loads after a restart what was written', async () => {
        const rows = await kit.rows.load();
        expect(rows.map(({ site }) => site.id)).to.equal(
            [...kit.engine.draft().hosts.keys()].sort((a, b) => a - b)
        );
        expect(rows[0]).to.equal(kit.engine.draft().hosts.get(rows[0]?.site.id ?? 0));
    });

    it('swaps names between two rows in one transaction', async () => {
        const { hosts } = kit.engine.draft();
        const [one, two] = [hosts.get(1), hosts.get(3)];
        if (one === undefined || two === undefined) {
            throw new Error('rows are missing');
        }
        const { store, rows } = kit;
        await store.db.write((tx) =>
            rows.write(
                tx,
                [
                    { id: 1, row: { ...one, site: { ...one.site, domain: two.site.domain } } },
                    { id: 3, row: { ...two, site: { ...two.site, domain: one.site.domain } } }
                ],
                true
            )
        );
        expect((await rows.load()).slice(0, 3).map(({ site }) => site.domain)).to.equal([
            two.site.domain,
            'xn--bcher-kva.test',
            one.site.domain
        ]);
        await store.db.write((tx) =>
            rows.write(
                tx,
                [
                    { id: 1, row: one },
                    { id: 3, row: two }
                ],
                true
            )
        );
    });
});
