import { createHash } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { solveChallenge as solveAsTheLibrary, verifySolution } from 'altcha-lib/v1';

import { authEntities, authMigrations } from '../../../../../core/src/features/auth/entities.ts';
import { Challenges } from '../../../../../core/src/features/auth/login/challenge.ts';
import { solveChallenge } from '../../../../support/core/entrance.ts';
import { type HandClock, handClock, openStore, type Store } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const key = Buffer.alloc(32, 7);

describe('Challenges', () => {
    let store: Store;
    let clock: HandClock;
    let challenges: Challenges;
    const open = (): Challenges => new Challenges({ db: store.db, clock, key, maxNumber: 500 });
    const encode = (solution: object): string => Buffer.from(JSON.stringify(solution)).toString('base64');
    const decode = (payload: string): Record<string, unknown> =>
        JSON.parse(Buffer.from(payload, 'base64').toString()) as Record<string, unknown>;

    beforeEach(async () => {
        store = await openStore({
            entities: authEntities,
            migrations: authMigrations
        });
        clock = handClock(Date.now());
        challenges = open();
    });
    afterEach(() => store.remove());

    const refused = async (payload: string | undefined, code: number): Promise<void> => {
        const error = (await expect(challenges.spend(payload)).to.reject()) as Error & {
            code: number;
            data: { challenge: { challenge: string } };
        };
        expect(error.code).to.equal(code);
        expect(error.data.challenge.challenge).to.match(/^[0-9a-f]{64}$/);
    };

    it("is solved by ALTCHA's own solver and verified by its own server", async () => {
        const challenge = challenges.create();
        const { promise } = solveAsTheLibrary(
            challenge.challenge,
            challenge.salt,
            challenge.algorithm,
            challenge.maxnumber
        );
        const solution = await promise;
        const payload = encode({
            algorithm: challenge.algorithm,
            challenge: challenge.challenge,
            number: solution?.number,
            salt: challenge.salt,
            signature: challenge.signature,
            took: solution?.took
        });
        // The library hands the key to node:crypto, which takes bytes as well.
        expect(await verifySolution(payload, key as never)).to.be.true();
        expect(challenges.check(payload)?.challenge).to.equal(challenge.challenge);
        await challenges.spend(payload);
    });

    it('is spent once, also by many at the same time and after a restart', async () => {
        const payload = solveChallenge(challenges.create());
        const results = await Promise.allSettled(Array.from({ length: 20 }, () => challenges.spend(payload)));
        expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        await refused(payload, 40112);
        await store.reopen();
        challenges = open();
        await refused(payload, 40112);
    });

    it('is open until 120 seconds are over, and stays closed when the clock is set back', async () => {
        const payload = solveChallenge(challenges.create());
        clock.time += 119_000;
        expect(challenges.check(payload)).not.to.be.null();
        clock.time += 2_000;
        await refused(payload, 40112);
        const spent = solveChallenge(challenges.create());
        await challenges.spend(spent);
        clock.time += 130_000;
        await challenges.spend(solveChallenge(challenges.create()));
        clock.time -= 130_000;
        await refused(spent, 40112);
    });

    it('forgets spent ones once they are long over', async () => {
        await challenges.spend(solveChallenge(challenges.create()));
        clock.time += 3600_000;
        await challenges.spend(solveChallenge(challenges.create()));
        expect(
            store.db.prepare<[], { n: number }>('select count(*) n from auth_spent_challenges').get()?.n
        ).to.equal(1);
    });

    it('refuses whatever is not exactly a solution', async () => {
        const good = decode(solveChallenge(challenges.create()));
        const salt = String(good['salt']);
        const number = Number(good['number']);
        const forged = createHash('sha256').update('x1').digest('hex');
        for (const change of [
            { number: number + 1 },
            { number: String(number) },
            { number: -1 },
            { number: 2 ** 60 },
            { number: number + 0.5 },
            { number: null },
            { salt: salt.replace('for=login', 'for=reset') },
            { salt: salt.replace(/expires=\d/, 'expires=9') },
            { salt: `${salt}1` },
            { salt: '' },
            { salt: 5 },
            { algorithm: 'SHA-1' },
            { algorithm: 'none' },
            { signature: '0'.repeat(64) },
            { signature: '' },
            { signature: 'é'.repeat(64) },
            { challenge: forged },
            { challenge: forged, salt: 'x', number: 1 }
        ]) {
            await refused(encode({ ...good, ...change }), 40112);
        }
        for (const payload of [
            '%%%',
            'AAAA',
            encode([]),
            encode({}),
            'bnVsbA==',
            'MQ==',
            'A'.repeat(5000),
            '\u0000'
        ]) {
            await refused(payload, 40112);
        }
        await refused(undefined, 40111);
        await refused('', 40111);
        await challenges.spend(encode(good));
    });

    it('does not let a digit be moved from the number into the salt', async () => {
        const good = decode(solveChallenge(challenges.create()));
        const digits = String(good['number']);
        for (let cut = 1; cut < digits.length; cut += 1) {
            await refused(
                encode({
                    ...good,
                    salt: `${String(good['salt'])}${digits.slice(0, cut)}`,
                    number: Number(digits.slice(cut))
                }),
                40112
            );
        }
    });

    it('is bound to its key', async () => {
        const payload = solveChallenge(
            new Challenges({ db: store.db, clock, key: Buffer.alloc(32, 8), maxNumber: 10 }).create()
        );
        await refused(payload, 40112);
    });

    it('asks for more work when many are solved, and for as much as before afterwards', async () => {
        expect(challenges.create().maxnumber).to.equal(500);
        for (let solved = 0; solved < 60; solved += 1) {
            await challenges.spend(solveChallenge(challenges.create()));
        }
        expect(challenges.create().maxnumber).to.equal(1000);
        clock.time += 121_000;
        expect(challenges.create().maxnumber).to.equal(500);
    });

    it('turns a hundred thousand junk solutions away in microseconds each, without touching the disk', () => {
        const good = decode(solveChallenge(challenges.create()));
        const junk = Array.from({ length: 1000 }, (_, index) => encode({ ...good, number: 1000 + index }));
        const start = process.cpuUsage();
        for (let round = 0; round < 100; round += 1) {
            junk.forEach((payload) => challenges.check(payload));
        }
        const { user, system } = process.cpuUsage(start);
        expect((user + system) / 100_000).to.be.below(100);
        expect(
            store.db.prepare<[], { n: number }>('select count(*) n from auth_spent_challenges').get()?.n
        ).to.equal(0);
    });
});
