import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    idempotencyEntities,
    idempotencyMigrations
} from '../../../../../core/src/server/http/idempotency/entities.ts';
import { createIdempotency } from '../../../../../core/src/server/http/idempotency/idempotency.ts';
import type { Idempotency, KeyInUse } from '../../../../../core/src/server/http/ports.ts';
import { type HandClock, handClock, openStore, person, type Store } from '../../../../support/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('createIdempotency', () => {
    const admin = person('admin');
    const answer = {
        status: 201,
        headers: { location: '/api/hosts/7' },
        body: '{"code":0,"message":"ok","data":{"note":"canary-answer"}}'
    };
    let store: Store;
    let keys: Idempotency;
    let clock: HandClock;

    const first = async (key: string, who = admin): Promise<KeyInUse> => {
        const claimed = await keys.claim(who, key, 'print');
        if (!('first' in claimed)) {
            throw new Error('not the first');
        }
        return claimed.first;
    };
    const count = (): number =>
        store.db.prepare<[], { n: number }>('select count(*) as n from idempotency_keys').get()?.n ?? -1;

    beforeEach(async () => {
        store = await openStore({ entities: idempotencyEntities, migrations: idempotencyMigrations });
        clock = handClock();
        keys = createIdempotency({ db: store.db, keyring: store.keyring, clock });
    });

    afterEach(() => store.remove());

    it('replays a kept answer, also after a restart', async () => {
        await (await first('k')).keepAlone(answer);
        expect(await keys.claim(admin, 'k', 'print')).to.equal({ replay: answer });
        keys = createIdempotency({ db: await store.reopen(), keyring: store.keyring, clock });
        expect(await keys.claim(admin, 'k', 'print')).to.equal({ replay: answer });
    });

    it('refuses another request with the same key, and keeps the first answer', async () => {
        await (await first('k')).keepAlone(answer);
        await expect(keys.claim(admin, 'k', 'other')).to.reject(
            'The Idempotency-Key was used with another request'
        );
        expect(await keys.claim(admin, 'k', 'print')).to.equal({ replay: answer });
    });

    it('refuses while the first request has no known end, also after a restart', async () => {
        await first('k');
        const failure = await expect(keys.claim(admin, 'k', 'print')).to.reject();
        expect(failure).to.include({ code: 40903, reason: 'IDEMPOTENCY_UNRESOLVED' });
        await expect(keys.claim(admin, 'k', 'other')).to.reject(
            'The Idempotency-Key was used with another request'
        );
        keys = createIdempotency({ db: await store.reopen(), keyring: store.keyring, clock });
        await expect(keys.claim(admin, 'k', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
    });

    it('lets one of many requests at once be the first', async () => {
        const claims = await Promise.allSettled(
            Array.from({ length: 20 }, () => keys.claim(admin, 'k', 'print'))
        );
        expect(claims.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        expect(
            claims.filter(
                (each) => each.status === 'rejected' && (each.reason as { code: number }).code === 40903
            )
        ).to.have.length(19);
    });

    it('keeps keys of different accounts and tokens apart', async () => {
        await (await first('k')).keepAlone(answer);
        await first('k', person('olga'));
        await first('k', person('admin', [], { key: 'user:admin token:3' }));
        await first('b c', person('x', [], { key: 'a' }));
        await first('c', person('x', [], { key: 'a b' }));
        expect(count()).to.equal(5);
    });

    it('keeps an answer with its change or not at all', async () => {
        const key = await first('k');
        await expect(
            store.db.write(async (tx) => {
                await key.keep(tx, answer);
                throw new Error('the change failed');
            })
        ).to.reject('the change failed');
        await expect(keys.claim(admin, 'k', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
        await store.db.write((tx) => key.keep(tx, answer));
        expect(await keys.claim(admin, 'k', 'print')).to.equal({ replay: answer });
    });

    it('forgets after 24 hours', async () => {
        await (await first('k')).keepAlone(answer);
        await first('unresolved');
        clock.time += 24 * 3_600_000 - 1;
        expect(await keys.claim(admin, 'k', 'print')).to.equal({ replay: answer });
        clock.time += 1;
        await first('k');
        await first('unresolved');
        expect(count()).to.equal(2);
    });

    it('keeps at most 1,000 of an actor and drops the oldest answers first', async () => {
        await first('unresolved');
        for (let index = 0; index < 1_010; index += 1) {
            clock.time += 1;
            await (await first(`k${index}`)).keepAlone(answer);
        }
        await (await first('k', person('olga'))).keepAlone(answer);
        expect(count()).to.equal(1_001);
        await expect(keys.claim(admin, 'unresolved', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
        expect(await keys.claim(admin, 'k1009', 'print')).to.include('replay');
        expect(await keys.claim(admin, 'k11', 'print')).to.include('replay');
        await first('k10');
    });

    it('seals what it keeps, and does not keep the key itself', async () => {
        await (await first('canary-key')).keepAlone(answer);
        await store.db.close();
        const bytes = readFileSync(store.file).toString('latin1');
        expect(bytes).not.to.contain('canary');
        await store.reopen();
    });

    it('does not give the answer of one key for another when rows are mixed up', async () => {
        await (await first('a')).keepAlone(answer);
        await (await first('b')).keepAlone({ ...answer, body: '{}' });
        await store.db.write(async (tx) => {
            await tx.em.execute(
                'update idempotency_keys set answer = (select max(answer) from idempotency_keys)',
                [],
                'run'
            );
        });
        const outcomes = await Promise.allSettled([
            keys.claim(admin, 'a', 'print'),
            keys.claim(admin, 'b', 'print')
        ]);
        expect(outcomes.map(({ status }) => status).sort()).to.equal(['fulfilled', 'rejected']);
    });

    it('does not keep an answer beyond 1 MiB', async () => {
        await (await first('k')).keepAlone({ ...answer, body: 'x'.repeat(1024 * 1024 + 1) });
        await expect(keys.claim(admin, 'k', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
    });
});
