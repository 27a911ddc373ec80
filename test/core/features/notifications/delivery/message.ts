import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import { eventPattern, matches } from '../../../../../core/src/features/notifications/channels/patterns.ts';
import {
    compose,
    messageId,
    type Payload
} from '../../../../../core/src/features/notifications/delivery/message.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const now = Date.UTC(2026, 0, 15, 12);
const payloadOf = (notification: Parameters<typeof compose>[0]): Payload =>
    JSON.parse(compose(notification, now).body) as Payload;

describe('compose', () => {
    it('makes the payload that receivers get', () => {
        expect(
            compose(
                {
                    event: 'certificate.expiring',
                    severity: 'warning',
                    title: 'A certificate expires',
                    text: 'In 7 days',
                    data: { id: 3, names: ['a.example'] }
                },
                now
            )
        ).to.equal({
            event: 'certificate.expiring',
            severity: 'warning',
            title: 'A certificate expires',
            body: '{"type":"certificate.expiring","timestamp":"2026-01-15T12:00:00.000Z","data":{"severity":"warning","title":"A certificate expires","text":"In 7 days","details":{"id":3,"names":["a.example"]}}}'
        });
        expect(payloadOf({ event: 'a.b', severity: 'info', title: 'T' }).data).to.equal({
            severity: 'info',
            title: 'T',
            text: null,
            details: null
        });
    });

    it('masks what stands under a telling key', () => {
        expect(
            payloadOf({
                event: 'a.b',
                severity: 'info',
                title: 'T',
                data: { user: 'olga', deep: [{ password: 'canary', apiToken: 'canary' }] }
            }).data.details
        ).to.equal({ user: 'olga', deep: [{ password: '[redacted]', apiToken: '[redacted]' }] });
    });

    it('bounds everything, and never throws', () => {
        const circular: Record<string, unknown> = {};
        circular['self'] = circular;
        for (const data of [
            circular,
            { big: 1n },
            {
                get thrown() {
                    throw new Error('no');
                }
            },
            { long: 'x'.repeat(40_000) },
            { toJSON: () => undefined }
        ]) {
            expect(
                JSON.stringify(payloadOf({ event: 'a.b', severity: 'info', title: 'T', data })).length
            ).to.be.below(2_000);
        }
        fc.assert(
            fc.property(
                fc.string({ unit: 'binary', maxLength: 300 }),
                fc.string({ unit: 'binary', maxLength: 300 }),
                fc.jsonValue(),
                (title, text, data) => {
                    const message = compose(
                        { event: 'a.b', severity: 'info', title, text, data: data as never }, // wrong on purpose
                        now
                    );
                    expect(message.title).to.satisfy(
                        (value: string) =>
                            value.length <= 200 && !/\p{Cc}/u.test(value) && value.isWellFormed()
                    );
                    expect(JSON.parse(message.body)).to.be.an.object();
                }
            )
        );
        expect(
            payloadOf({ event: 'a.b', severity: 'info', title: 'x'.repeat(500), text: 'y'.repeat(20_000) })
                .data.text
        ).to.have.length(10_000);
        expect(compose({ event: 'a.b', severity: 'info', title: 'one\r\nBcc: two' }, now).title).to.equal(
            'one Bcc: two'
        );
    });

    it('names each message anew', () => {
        expect(messageId())
            .to.match(/^msg_[0-9a-f]{32}$/)
            .and.not.equal(messageId());
    });
});

describe('matches', () => {
    it('takes everything, a family, or one event', () => {
        expect(matches(['*'], 'certificate.expiring')).to.be.true();
        expect(matches(['certificate.*'], 'certificate.expiring')).to.be.true();
        expect(matches(['certificate.*'], 'certificate.renewal.failed')).to.be.true();
        expect(matches(['certificate.expiring'], 'certificate.expiring')).to.be.true();
        expect(matches(['engine.failed', 'auth.*'], 'auth.locked')).to.be.true();
        for (const [pattern, event] of [
            ['certificate.*', 'certificate'],
            ['certificate.*', 'certificates.expiring'],
            ['certificate.expiring', 'certificate.expiringSoon'],
            ['certificate', 'certificate.expiring']
        ] as const) {
            expect(matches([pattern], event), pattern).to.be.false();
        }
        expect(matches([], 'a.b')).to.be.false();
    });

    it('knows what is a pattern', () => {
        for (const pattern of [
            '*',
            'a',
            'a.*',
            'a.b',
            'a.b.*',
            'auth.secondFactor',
            'my-plugin.it-happened'
        ]) {
            expect(eventPattern.test(pattern), pattern).to.be.true();
        }
        for (const pattern of ['', '**', '*.a', 'a*', 'a.*.b', 'a.', '.a', 'A.b', 'a b', 'a.b\n', '*\n']) {
            expect(eventPattern.test(pattern), pattern).to.be.false();
        }
    });
});
