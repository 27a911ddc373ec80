import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { commonWords } from '../../../../../core/src/features/users/passwords/common-passwords.ts';
import { faultOf } from '../../../../../core/src/features/users/passwords/password-policy.ts';
import { type Hasher, Passwords } from '../../../../../core/src/features/users/passwords/passwords.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const cheap = { memoryCost: 64, timeCost: 1, parallelism: 1 };

/** Hashes that wait to be let go. */
function held(): Hasher & { running: number; most: number; release(): void } {
    const waiting: (() => void)[] = [];
    const gate = {
        running: 0,
        most: 0,
        release: () => waiting.shift()?.(),
        hash: async () => {
            gate.running += 1;
            gate.most = Math.max(gate.most, gate.running);
            await new Promise<void>((resolve) => waiting.push(resolve));
            gate.running -= 1;
            return 'hash';
        },
        verify: async () => true
    };
    return gate;
}

describe('Passwords', () => {
    it('makes argon2id hashes of at least 19 MiB and two passes', async () => {
        const passwords = new Passwords();
        const hash = await passwords.hash('correct');
        const [, kind, , parameters = ''] = hash.split('$');
        expect(kind).to.equal('argon2id');
        const [memory = 0, passes = 0, lanes = 0] = parameters
            .split(',')
            .map((each) => Number(each.slice(2)));
        expect(memory).to.be.at.least(19_456);
        expect([passes, lanes]).to.equal([2, 1]);
        expect(await passwords.verify(hash, 'correct')).to.be.true();
        expect(await passwords.verify(hash, 'Correct')).to.be.false();
        expect(passwords.isOutdated(hash)).to.be.false();
    });

    it('has a hash that nothing matches and that costs as much as any other', async () => {
        const passwords = new Passwords({ cost: cheap });
        expect(await passwords.verify(passwords.unmatchable, '')).to.be.false();
        expect(passwords.unmatchable.split('$')[3]).to.equal((await passwords.hash('x')).split('$')[3] ?? '');
        expect(passwords.unmatchable).to.have.length((await passwords.hash('x')).length);
    });

    it('knows a hash that is weaker than what it makes', async () => {
        const old = await new Passwords({ cost: cheap }).hash('correct');
        expect(new Passwords({ cost: { ...cheap, memoryCost: 128 } }).isOutdated(old)).to.be.true();
        expect(new Passwords({ cost: { ...cheap, timeCost: 2 } }).isOutdated(old)).to.be.true();
        expect(new Passwords({ cost: cheap }).isOutdated(old)).to.be.false();
    });

    it('computes a few at a time, lets a bounded number wait, and turns the rest away', async () => {
        const gate = held();
        const passwords = new Passwords({ hasher: gate, inFlight: 2, queue: 3 });
        const results = Array.from({ length: 8 }, () =>
            passwords.hash('x').then(
                () => 'done',
                (error: { reason: string; data: object }) => error
            )
        );
        const refused = (await Promise.all(results.slice(5))) as { reason: string; data: object }[];
        expect(refused.map(({ reason, data }) => [reason, data])).to.equal(
            Array.from({ length: 3 }, () => ['RATE_LIMITED', { retryAfterSeconds: 1 }])
        );
        for (let left = 0; left < 5; left += 1) {
            gate.release();
            await new Promise((resolve) => setImmediate(resolve));
        }
        expect(await Promise.all(results.slice(0, 5))).to.equal(Array.from({ length: 5 }, () => 'done'));
        expect(gate.most).to.equal(2);
        const after = passwords.hash('x');
        gate.release();
        expect(await after).to.equal('hash');
    });
});

describe('faultOf', () => {
    it('takes what is long enough and would not be tried first', () => {
        for (const good of [
            'a mild breeze on tuesday night',
            'correct-horse-lantern',
            'zebra quarry 7 moss',
            'ünïcödé ist schön',
            '🦦🌲🪨🌊🔥🧊🍄🌙⭐🌧',
            'test-password-for-the-panel',
            'Xk9#mPq2vL',
            'x'.repeat(4) + 'abcdWXYZ0987!',
            'hunter2-and-friends'
        ]) {
            expect(faultOf(good, ['owner', 'portico']), good).to.be.null();
        }
    });

    it("refuses what is short, common, a walk over the keys, or made of the user's or the panel's name", () => {
        for (const bad of [
            '',
            'ninechars',
            '🦦🌲🪨🌊🔥🧊🍄🌙⭐',
            'password123',
            'Password1234',
            'P@ssw0rd123',
            'passwordpassword',
            '1234567890',
            '12345678901',
            '0987654321',
            'qwertyuiop',
            'QWERTYUIOP1',
            '1q2w3e4r5t',
            '1qaz2wsx3edc',
            'zaq12wsx!@',
            'aaaaaaaaaa',
            'abcabcabcabc',
            'abcdefghij',
            'iloveyou123',
            'iloveyou2024!',
            'administrator',
            'admin12345',
            'adminadmin1',
            'letmein1234',
            'welcome2026',
            'football2024',
            '2024-01-01',
            '01/01/1990',
            'michael1987',
            'changeme123',
            'summer2026',
            'Portico123',
            'portico-2026',
            'alice.smith1',
            'alice12345',
            'asdfghjkl;',
            'secret\ud800secret'
        ]) {
            expect(faultOf(bad, ['alice.smith', 'alice', 'smith', 'portico']), bad).not.to.be.null();
        }
    });

    it('refuses more than a kibibyte, and counts characters, not bytes', () => {
        const long = 'seven quiet foxes '.repeat(60);
        expect(faultOf(long, [])).to.contain('1024');
        expect(faultOf(long.slice(0, 1000), [])).to.be.null();
    });

    it('knows at least some hundreds of words', () => {
        expect(commonWords.size).to.be.above(500);
    });
});
