import { hkdfSync } from 'node:crypto';
import { networkInterfaces } from 'node:os';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    ConsoleTokens,
    signConsoleToken
} from '../../../../../core/src/features/auth/tokens/console-tokens.ts';
import { TokenSigner } from '../../../../../core/src/features/auth/tokens/jwt.ts';
import { handClock } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it } = lab;

function keyringOf(master: string): { derive(label: string): Buffer } {
    return { derive: (label) => Buffer.from(hkdfSync('sha256', master, '', label, 32)) };
}

function reasonOf(work: () => unknown): string {
    try {
        work();
    } catch (error) {
        return (error as { reason?: string }).reason ?? 'none';
    }
    return 'taken';
}

const keyring = keyringOf("the data folder's master key");

describe('ConsoleTokens', () => {
    it('takes a token once, for the system', () => {
        const clock = handClock();
        const tokens = new ConsoleTokens({ clock, keyring });
        const token = signConsoleToken(keyring, tokens.instance, clock.now());
        expect(tokens.claims(token)).to.be.true();
        const caller = tokens.take(token, '127.0.0.1');
        expect(caller).to.include({ kind: 'system', id: null, username: null, tokenId: null, fresh: true });
        expect(caller.can('anything:at-all')).to.be.true();
        expect(reasonOf(() => tokens.take(token, '127.0.0.1'))).to.equal('TOKEN_REVOKED');
        expect(
            reasonOf(() => tokens.take(signConsoleToken(keyring, tokens.instance, clock.now()), '::1'))
        ).to.equal('taken');
    });

    it('refuses one that is older than half a minute, also when it was spent', () => {
        const clock = handClock();
        const tokens = new ConsoleTokens({ clock, keyring });
        const [spent, unused] = [
            signConsoleToken(keyring, tokens.instance, clock.now()),
            signConsoleToken(keyring, tokens.instance, clock.now())
        ];
        tokens.take(spent, '127.0.0.1');
        clock.time += 29_000;
        expect(reasonOf(() => tokens.take(spent, '127.0.0.1'))).to.equal('TOKEN_REVOKED');
        clock.time += 1_000;
        tokens.take(signConsoleToken(keyring, tokens.instance, clock.now()), '127.0.0.1');
        expect(reasonOf(() => tokens.take(spent, '127.0.0.1'))).to.equal('TOKEN_EXPIRED');
        expect(reasonOf(() => tokens.take(unused, '127.0.0.1'))).to.equal('TOKEN_EXPIRED');
    });

    it('refuses one from another machine, and does not spend it', () => {
        const clock = handClock();
        const tokens = new ConsoleTokens({ clock, keyring });
        const token = signConsoleToken(keyring, tokens.instance, clock.now());
        for (const ip of [
            '203.0.113.7',
            '10.255.255.1',
            '2001:db8::1',
            '::',
            '0.0.0.0',
            '',
            'localhost',
            '126.0.0.1'
        ]) {
            expect(
                reasonOf(() => tokens.take(token, ip)),
                ip
            ).to.equal('TOKEN_INVALID');
        }
        expect(reasonOf(() => tokens.take(token, '::ffff:127.0.0.1'))).to.equal('taken');
    });

    it("takes one from each of the machine's own addresses", () => {
        const clock = handClock();
        const tokens = new ConsoleTokens({ clock, keyring });
        for (const { address } of Object.values(networkInterfaces()).flatMap(
            (addresses) => addresses ?? []
        )) {
            expect(
                reasonOf(() => tokens.take(signConsoleToken(keyring, tokens.instance, clock.now()), address)),
                address
            ).to.equal('taken');
        }
    });

    it('refuses one that was made for another process, or with the key of another folder', () => {
        const clock = handClock();
        const tokens = new ConsoleTokens({ clock, keyring });
        const former = new ConsoleTokens({ clock, keyring });
        expect(former.instance).not.to.equal(tokens.instance);
        expect(
            reasonOf(() => tokens.take(signConsoleToken(keyring, former.instance, clock.now()), '127.0.0.1'))
        ).to.equal('TOKEN_INVALID');
        expect(
            reasonOf(() =>
                tokens.take(
                    signConsoleToken(keyringOf('another key'), tokens.instance, clock.now()),
                    '127.0.0.1'
                )
            )
        ).to.equal('TOKEN_INVALID');
    });

    it('refuses a token of another kind, and one whose header only says that it is of ours', () => {
        const clock = handClock();
        const tokens = new ConsoleTokens({ clock, keyring });
        const signer = new TokenSigner(keyring.derive(`console ${tokens.instance}`));
        const claims = {
            userId: 0,
            sessionId: 0,
            id: 'x',
            issuedAt: clock.now(),
            expiresAt: clock.now() + 30_000
        };
        const access = signer.sign('access', claims);
        const forged = signConsoleToken(keyring, tokens.instance, clock.now()).replace(
            /^[^.]+/,
            access.split('.')[0] ?? ''
        );
        const dressed = access.replace(/^[^.]+/, signer.sign('console', claims).split('.')[0] ?? '');
        expect(tokens.claims(access)).to.be.false();
        expect(tokens.claims(forged)).to.be.false();
        expect(tokens.claims(dressed)).to.be.true();
        for (const token of [access, forged, dressed, 'x', '']) {
            expect(reasonOf(() => tokens.take(token, '127.0.0.1'))).to.equal('TOKEN_INVALID');
        }
    });

    it('refuses to sign for what is no instance', () => {
        for (const instance of ['', 'short', `${'a'.repeat(21)}/`, 'a'.repeat(23)]) {
            expect(() => signConsoleToken(keyring, instance, 0)).to.throw(TypeError);
        }
    });
});
