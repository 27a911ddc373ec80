import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { authEntities, authMigrations } from '../../../../../core/src/features/auth/entities.ts';
import { Throttle } from '../../../../../core/src/features/auth/login/throttle.ts';
import { type HandClock, handClock, openStore, type Store } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const minute = 60_000;

describe('Throttle', () => {
    let store: Store;
    let clock: HandClock;
    let throttle: Throttle;
    const open = (): Throttle => new Throttle({ db: store.db, clock, key: Buffer.alloc(32, 1) });
    const attempt = async (username: string, ip: string, right = false): Promise<number> => {
        try {
            using started = throttle.begin(username, ip);
            await store.db.write(async (tx) => {
                await (right ? started.succeeded(tx) : started.failed(tx, 'password'));
            });
            return 0;
        } catch (error) {
            return (error as { data: { retryAfterSeconds: number } }).data.retryAfterSeconds;
        }
    };
    const fail = async (times: number, username: string, ip: string): Promise<void> => {
        for (let failed = 0; failed < times; failed += 1) {
            expect(await attempt(username, ip)).to.equal(0);
        }
    };

    beforeEach(async () => {
        store = await openStore({
            entities: authEntities,
            migrations: authMigrations
        });
        clock = handClock();
        throttle = open();
    });
    afterEach(() => store.remove());

    it('closes for a minute from the fifth failure on, a quarter of an hour from the tenth, an hour from the twentieth', async () => {
        await fail(5, 'owner', '192.0.2.1');
        expect(await attempt('owner', '198.51.100.1')).to.equal(60);
        for (let failed = 5; failed < 20; failed += 1) {
            clock.time += (failed < 10 ? 1 : 15) * minute;
            expect(await attempt('owner', '198.51.100.1')).to.equal(0);
        }
        expect(await attempt('owner', '203.0.113.1')).to.equal(3600);
    });

    it('leaves a guess a minute no more than some tens of guesses a day', async () => {
        let guesses = 0;
        for (let tried = 0; tried < 1440; tried += 1) {
            guesses += (await attempt('owner', `198.51.${tried % 256}.1`)) === 0 ? 1 : 0;
            clock.time += minute;
        }
        expect(guesses).to.be.between(20, 50);
    });

    it('forgets failures a day after the last one, and a success at once', async () => {
        await fail(4, 'owner', '192.0.2.1');
        clock.time += 24 * 60 * minute + 1;
        await fail(4, 'owner', '192.0.2.1');
        expect(await attempt('owner', '192.0.2.1', true)).to.equal(0);
        await fail(4, 'owner', '192.0.2.1');
        expect(await attempt('owner', '192.0.2.1')).to.equal(0);
        expect(await attempt('owner', '192.0.2.1')).to.equal(60);
    });

    it('gives a network back only what the account that logs in had failed there', async () => {
        await fail(4, 'typist', '192.0.2.1');
        for (let name = 0; name < 15; name += 1) {
            await fail(1, `guess${name}`, '192.0.2.1');
        }
        expect(await attempt('typist', '192.0.2.1', true)).to.equal(0);
        await fail(5, 'other', '192.0.2.1');
        expect(await attempt('somebody', '192.0.2.9')).to.equal(60);
        expect(await attempt('somebody', '198.51.100.1')).to.equal(0);
    });

    it('does not stay closed for a year when the clock is set back by one', async () => {
        await fail(5, 'owner', '192.0.2.1');
        clock.time -= 365 * 24 * 60 * minute;
        expect(await attempt('owner', '192.0.2.1')).to.equal(0);
        expect(await attempt('owner', '192.0.2.1')).to.equal(60);
    });

    it('keeps names only as keyed hashes, and nothing for ever', async () => {
        await fail(1, 'hunter2-typed-here', '192.0.2.1');
        expect(
            JSON.stringify(store.db.prepare<[], object>('select * from auth_throttle').all())
        ).not.to.contain('hunter2');
        clock.time += 60 * 24 * 60 * minute;
        await fail(1, 'another', '198.51.100.1');
        expect(store.db.prepare<[], { n: number }>('select count(*) n from auth_throttle').get()?.n).to.equal(
            3
        );
    });

    it('opens an account that is forgiven, from everywhere', async () => {
        await attempt('owner', '192.0.2.1', true);
        await fail(5, 'owner', '192.0.2.1');
        await fail(5, 'owner', '198.51.100.1');
        await store.db.write((tx) => throttle.forgive(tx, 'OWNER'));
        expect([await attempt('owner', '192.0.2.1'), await attempt('owner', '198.51.100.1')]).to.equal([
            0, 0
        ]);
    });
});
