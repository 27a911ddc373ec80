import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    idempotencyEntities,
    idempotencyMigrations
} from '../../../../../core/src/server/http/idempotency/entities.ts';
import { IdempotencyKeys } from '../../../../../core/src/server/http/idempotency/idempotency.ts';
import type { Idempotency, KeyInUse } from '../../../../../core/src/server/http/ports.ts';
import { type HandClock, handClock, openStore, person, type Store } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('IdempotencyKeys', () => {
    const admin = person('admin');
    const answer = {
        status: 201,
        headers: { location: '/api/hosts/7' },
        body: '{"code":0,"message":"ok","data":{"note":"canary-answer"}}'
    };
    let store: Store;
    let keys: Idempotency;
    let clock: HandClock;

    const { signal } = new AbortController();
    const claim = (who: typeof admin, key: string, print: string, of = signal) =>
        keys.claim(who, key, print, { signal: of });
    /** A first request that is over already, as far as others wait for it. */
    const first = async (key: string, who = admin): Promise<KeyInUse> => {
        const claimed = await claim(who, key, 'print');
        if (!('first' in claimed)) {
            throw new Error('not the first');
        }
        claimed.first.end();
        return claimed.first;
    };
    const count = (): number =>
        store.db.prepare<[], { n: number }>('select count(*) as n from idempotency_keys').get()?.n ?? -1;

    beforeEach(async () => {
        store = await openStore({ entities: idempotencyEntities, migrations: idempotencyMigrations });
        clock = handClock();
        keys = new IdempotencyKeys({ db: store.db, keyring: store.keyring, clock });
    });

    afterEach(() => store.remove());

    it('replays a kept answer, also after a restart', async () => {
        await (await first('k')).keepAlone(answer);
        expect(await claim(admin, 'k', 'print')).to.equal({ replay: answer });
        keys = new IdempotencyKeys({ db: await store.reopen(), keyring: store.keyring, clock });
        expect(await claim(admin, 'k', 'print')).to.equal({ replay: answer });
    });

    it('refuses another request with the same key, and keeps the first answer', async () => {
        await (await first('k')).keepAlone(answer);
        await expect(claim(admin, 'k', 'other')).to.reject(
            'The Idempotency-Key was used with another request'
        );
        expect(await claim(admin, 'k', 'print')).to.equal({ replay: answer });
    });

    it('refuses while the first request has no known end, also after a restart', async () => {
        await first('k');
        const failure = await expect(claim(admin, 'k', 'print')).to.reject();
        expect(failure).to.include({ code: 40903, reason: 'IDEMPOTENCY_UNRESOLVED' });
        await expect(claim(admin, 'k', 'other')).to.reject(
            'The Idempotency-Key was used with another request'
        );
        keys = new IdempotencyKeys({ db: await store.reopen(), keyring: store.keyring, clock });
        await expect(claim(admin, 'k', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
    });

    it('lets one of many requests at once be the first, and gives its answer to all others', async () => {
        const claims = Array.from({ length: 100 }, () => claim(admin, 'k', 'print'));
        const claimed = await Promise.race(claims);
        expect(claimed).to.include('first');
        await expect(claim(admin, 'k', 'other')).to.reject(
            'The Idempotency-Key was used with another request'
        );
        if ('first' in claimed) {
            await claimed.first.keepAlone(answer);
            claimed.first.end();
        }
        const all = await Promise.all(claims);
        expect(all.filter((each) => 'first' in each)).to.have.length(1);
        expect(all.flatMap((each) => ('replay' in each ? [each.replay] : []))).to.equal(
            Array.from({ length: 99 }, () => answer)
        );
    });

    it('waits no longer than its own call, and refuses when the first one ends without an answer', async () => {
        const claimed = await claim(admin, 'k', 'print');
        const controller = new AbortController();
        const gone = claim(admin, 'k', 'print', controller.signal);
        const stays = claim(admin, 'k', 'print');
        controller.abort();
        expect(await expect(gone).to.reject()).to.include({ code: 40903 });
        if ('first' in claimed) {
            claimed.first.end();
        }
        expect(await expect(stays).to.reject()).to.include({ code: 40903 });
    });

    it('lets the next one be the first when a claim could not be written', async () => {
        await store.db.close();
        const claims = await Promise.allSettled([claim(admin, 'k', 'print'), claim(admin, 'k', 'print')]);
        expect(claims.map(({ status }) => status)).to.equal(['rejected', 'rejected']);
        expect(
            claims.some((each) => (each as { reason: { code?: number } }).reason.code === 40903)
        ).to.be.false();
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
        await expect(claim(admin, 'k', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
        await store.db.write((tx) => key.keep(tx, answer));
        expect(await claim(admin, 'k', 'print')).to.equal({ replay: answer });
    });

    it('forgets after 24 hours', async () => {
        await (await first('k')).keepAlone(answer);
        await first('unresolved');
        clock.time += 24 * 3_600_000 - 1;
        expect(await claim(admin, 'k', 'print')).to.equal({ replay: answer });
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
        await expect(claim(admin, 'unresolved', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
        expect(await claim(admin, 'k1009', 'print')).to.include('replay');
        expect(await claim(admin, 'k11', 'print')).to.include('replay');
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
        const outcomes = await Promise.allSettled([claim(admin, 'a', 'print'), claim(admin, 'b', 'print')]);
        expect(outcomes.map(({ status }) => status).sort()).to.equal(['fulfilled', 'rejected']);
    });

    it('does not keep an answer beyond 1 MiB', async () => {
        await (await first('k')).keepAlone({ ...answer, body: 'x'.repeat(1024 * 1024 + 1) });
        await expect(claim(admin, 'k', 'print')).to.reject(
            'The first request with this Idempotency-Key has no known end'
        );
    });
});
