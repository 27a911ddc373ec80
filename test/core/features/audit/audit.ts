import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Audit } from '../../../../core/src/features/audit/audit.ts';
import { auditEntities, auditMigrations } from '../../../../core/src/features/audit/entities.ts';
import type { AuditFilter } from '../../../../core/src/features/audit/search/search.ts';
import type { AuditEntry } from '../../../../core/src/server/http/ports.ts';
import { entryOf, type HandClock, handClock, openStore, type Store } from '../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const users = ['admin', 'Olga', 'viewer'];
const actions = ['create', 'update', 'delete', 'login', 'run'];
const resources = ['hosts', 'users', 'settings'];

/** Entry `n` of the log that most tests look at. */
function made(n: number): AuditEntry {
    return entryOf({
        actor: { id: (n % 3) + 1, username: users[n % 3] ?? null, tokenId: null, plugin: null },
        action: actions[n % 5] ?? '',
        resource: resources[(n % 7) % 3] ?? '',
        resourceId: n % 11 === 0 ? 'a-name' : n % 13,
        outcome: n % 10 === 0 ? 'failure' : 'success',
        ip: `10.0.${n % 4}.${n % 200}`,
        requestId: `request-${n}`,
        after: { domain: `site${n}.example`, note: n === 700 ? 'a needle_50% here' : 'hay' }
    });
}

describe('Audit', () => {
    let store: Store;
    let audit: Audit;
    let clock: HandClock;
    const total = 3_000;
    const start = Date.UTC(2026, 0, 1);

    before(async () => {
        store = await openStore({ entities: auditEntities, migrations: auditMigrations });
        clock = handClock(start);
        audit = await Audit.open({
            db: store.db,
            keyring: store.keyring,
            headFile: join(store.folder, 'audit.head'),
            clock,
            log: store.log,
            retentionDays: () => 30
        });
        for (let n = 1; n <= total; n += 100) {
            await store.db.write(async (tx) => {
                for (let each = n; each < n + 100; each += 1) {
                    clock.time = start + each * 1_000;
                    await audit.record(tx, made(each));
                }
            });
        }
    });

    after(async () => {
        await audit.close();
        await store.remove();
    });

    const ids = async (filter: AuditFilter, limit = 500): Promise<number[]> => {
        const found: number[] = [];
        for (let place: number | null = null; ;) {
            const page = await audit.list(filter, { limit, before: place });
            found.push(...page.entries.map(({ id }) => id));
            place = page.next;
            if (place === null) {
                return found;
            }
        }
    };
    const expected = (holds: (entry: AuditEntry, n: number) => boolean): number[] =>
        Array.from({ length: total }, (_, index) => total - index).filter((n) => holds(made(n), n));

    it('lists newest first, with the total and the place of the next page', async () => {
        const page = await audit.list({}, { limit: 50, before: null });
        expect(page.entries.map(({ id }) => id)).to.equal(
            Array.from({ length: 50 }, (_, index) => total - index)
        );
        expect(page).to.include({ next: total - 49, total });
        expect(await ids({}, 333)).to.equal(expected(() => true));
    });

    it('shows an entry with all that it was given', () => {
        expect(audit.get(700)).to.equal({
            id: 700,
            at: new Date(start + 700_000).toISOString(),
            actor: { id: 2, username: 'Olga', tokenId: null, plugin: null },
            action: 'create',
            resource: 'hosts',
            resourceId: 11,
            outcome: 'failure',
            status: 201,
            code: 0,
            count: 1,
            ip: '10.0.0.100',
            userAgent: 'test',
            requestId: 'request-700',
            changes: { before: null, after: { domain: 'site700.example', note: 'a needle_50% here' } },
            hash: audit.get(700).hash
        });
        expect(audit.get(700).hash).to.match(/^[0-9a-f]{64}$/);
        expect(() => audit.get(total + 1)).to.throw('There is nothing of that name here');
    });

    it('finds exactly what each filter says, over indexed and fresh entries, at every page size', async () => {
        const cases: readonly (readonly [AuditFilter, (entry: AuditEntry, n: number) => boolean])[] = [
            [{ action: 'run' }, ({ action }) => action === 'run'],
            [{ action: 'nothing' }, () => false],
            [{ resource: 'users' }, ({ resource }) => resource === 'users'],
            [{ resourceId: '5' }, ({ resourceId }) => resourceId === 5],
            [{ resourceId: 'a-name' }, ({ resourceId }) => resourceId === 'a-name'],
            [{ actor: 'oLGA' }, ({ actor }) => actor.username === 'Olga'],
            [{ actor: '3' }, ({ actor }) => actor.id === 3],
            [{ outcome: 'failure' }, ({ outcome }) => outcome === 'failure'],
            [
                { outcome: 'failure', action: 'create', resource: 'hosts', actor: 'admin' },
                ({ outcome, action, resource, actor }) =>
                    outcome === 'failure' &&
                    action === 'create' &&
                    resource === 'hosts' &&
                    actor.username === 'admin'
            ],
            [{ from: start + 1_500_000 }, (_entry, n) => n >= 1_500],
            [{ to: start + 1_500_000 }, (_entry, n) => n <= 1_500],
            [
                { from: start + 100_000, to: start + 200_000, action: 'login' },
                ({ action }, n) => n >= 100 && n <= 200 && action === 'login'
            ],
            [{ from: start + 9_000_000 }, () => false],
            [{ q: 'needle_50%' }, (_entry, n) => n === 700],
            [{ q: 'NEEDLE' }, (_entry, n) => n === 700],
            [{ q: 'needleX50' }, () => false],
            [{ q: 'site29' }, (_entry, n) => String(n).startsWith('29')],
            [{ q: 'request-2' }, (_entry, n) => String(n).startsWith('2')],
            [{ q: '10.0.1.1' }, ({ ip }) => ip?.includes('10.0.1.1') === true],
            [{ q: 'ga' }, ({ actor }) => actor.username === 'Olga'],
            [
                { q: 'olga', action: 'run' },
                ({ actor, action }) => actor.username === 'Olga' && action === 'run'
            ],
            [{ q: '"' }, () => true],
            [{ q: 'hay" OR "a' }, () => false]
        ];
        for (const [filter, holds] of cases) {
            const all = expected(holds);
            expect(await ids(filter), JSON.stringify(filter)).to.equal(all);
            expect((await ids(filter, 7)).slice(0, 100), JSON.stringify(filter)).to.equal(all.slice(0, 100));
            const exported: number[] = [];
            for await (const entry of audit.export(filter)) {
                exported.push(entry.id);
            }
            expect(exported, JSON.stringify(filter)).to.equal(all.reverse());
        }
    });

    it('tells a filtered total only where the page holds everything', async () => {
        expect((await audit.list({ q: 'needle' }, { limit: 5, before: null })).total).to.equal(1);
        expect((await audit.list({ action: 'run' }, { limit: 5, before: null })).total).to.be.undefined();
    });

    it('keeps a page where it is while entries are added', async () => {
        const first = await audit.list({}, { limit: 10, before: null });
        await audit.recordAlone(entryOf({ action: 'later' }));
        const second = await audit.list({}, { limit: 10, before: first.next });
        expect(second.entries[0]?.id).to.equal((first.entries.at(-1)?.id ?? 0) - 1);
    });

    it('finds by time also after the clock was put back', async () => {
        const other = await openStore({ entities: auditEntities, migrations: auditMigrations });
        const hand = handClock(start);
        const log = await Audit.open({
            db: other.db,
            keyring: other.keyring,
            headFile: join(other.folder, 'audit.head'),
            clock: hand,
            log: other.log,
            retentionDays: () => 30
        });
        try {
            for (const minute of [0, 60, 10, 20, 70]) {
                hand.time = start + minute * 60_000;
                await log.recordAlone(entryOf({ resourceId: minute }));
            }
            hand.time -= 5_000;
            await log.recordAlone(entryOf({ resourceId: 71 }));
            const page = await log.list(
                { from: start + 5 * 60_000, to: start + 30 * 60_000 },
                { limit: 50, before: null }
            );
            expect(page.entries.map(({ resourceId }) => resourceId)).to.equal([20, 10]);
            expect(log.get(6).at).to.equal(log.get(5).at);
            expect(await log.verify()).to.include({ holds: true });
        } finally {
            await log.close();
            await other.remove();
        }
    });

    it('bounds and encodes what strangers write', async () => {
        await audit.recordAlone(
            entryOf({
                userAgent: `\u001b[2J\r\n${'x'.repeat(5_000)}`,
                requestId: 'a\nb',
                actor: { id: null, username: `eve\u202e${'y'.repeat(500)}`, tokenId: null, plugin: null },
                resourceId: 'z'.repeat(9_000)
            })
        );
        const { userAgent, requestId, actor, resourceId } = audit.get(audit.head().sequence);
        expect(userAgent?.startsWith('\\u001b[2J\\u000d\\u000axxx')).to.be.true();
        expect(userAgent?.length ?? Infinity).to.be.below(560);
        expect(requestId).to.equal('a\\u000ab');
        expect(actor.username?.length ?? Infinity).to.be.below(140);
        expect(String(resourceId).length).to.equal(256);
        expect(await audit.verify()).to.include({ holds: true });
    });

    it('merges refusals and writes what is counted when it closes', async () => {
        const refusal = entryOf({
            actor: { id: null, username: null, tokenId: null, plugin: null },
            outcome: 'failure',
            code: 40100,
            status: 401
        });
        const at = audit.head().sequence;
        await Promise.all(Array.from({ length: 30 }, () => audit.refused(refusal)));
        expect(audit.head().sequence).to.equal(at + 1);
        await audit.close();
        const db = await store.reopen();
        audit = await Audit.open({
            db,
            keyring: store.keyring,
            headFile: join(store.folder, 'audit.head'),
            clock,
            log: store.log,
            retentionDays: () => 30
        });
        expect(audit.get(at + 2)).to.include({ code: 40100, count: 29 });
        expect(await audit.verify()).to.include({ holds: true, entries: at + 2 });
    });
});
