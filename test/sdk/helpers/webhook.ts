import { createHmac } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { isWebhookProven, newWebhookSecret } from '../../../sdk/src/helpers/webhook.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const secret = newWebhookSecret();
const body = Buffer.from('{"a":1}');
const now = Date.parse('2026-06-01T00:00:00Z');
const hex = (key: string): string => createHmac('sha256', key).update(body).digest('hex');
const standard = (stamp: number, id = 'msg_1', key = secret): Record<string, string> => ({
    'webhook-id': id,
    'webhook-timestamp': String(stamp),
    'webhook-signature': `v1,bm9wZQ== v1,${createHmac('sha256', Buffer.from(key.slice(6), 'base64'))
        .update(`${id}.${stamp}.`)
        .update(body)
        .digest('base64')}`
});

describe('newWebhookSecret', () => {
    it('makes 32 random bytes in the form of Standard Webhooks', () => {
        expect(secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
        expect(newWebhookSecret()).to.not.equal(secret);
    });
});

describe('isWebhookProven', () => {
    it('takes the signatures of GitHub, Gitea and Standard Webhooks', () => {
        for (const headers of [
            { 'x-hub-signature-256': `sha256=${hex(secret)}` },
            { 'x-gitea-signature': hex(secret) },
            standard(now / 1_000),
            standard(now / 1_000 - 299)
        ]) {
            expect(isWebhookProven(headers, body, secret, { now })).to.be.true();
            expect(isWebhookProven(headers, Buffer.from('{"a":2}'), secret, { now })).to.be.false();
            expect(isWebhookProven(headers, body, newWebhookSecret(), { now })).to.be.false();
        }
    });

    it('refuses what is old, of the future, without an id, or not a signature at all', () => {
        for (const headers of [
            {},
            standard(now / 1_000 - 301),
            standard(now / 1_000 + 301),
            standard(now / 1_000, ''),
            { ...standard(now / 1_000), 'webhook-timestamp': 'now' },
            { 'x-hub-signature-256': hex(secret) },
            { 'x-hub-signature-256': '' }
        ]) {
            expect(isWebhookProven(headers, body, secret, { now })).to.be.false();
        }
    });

    it('takes a plain token in the headers that the receiver names, and beside a wrong signature in none', () => {
        const headers = { 'x-gitlab-token': secret };
        const tokens = ['x-trigger-token', 'x-gitlab-token'];
        expect(isWebhookProven(headers, body, secret)).to.be.false();
        expect(isWebhookProven(headers, body, secret, { tokens })).to.be.true();
        expect(isWebhookProven({ 'x-gitlab-token': `${secret}x` }, body, secret, { tokens })).to.be.false();
        const both = { ...headers, 'x-gitea-signature': hex('other') };
        expect(isWebhookProven(both, body, secret, { tokens })).to.be.false();
    });
});
