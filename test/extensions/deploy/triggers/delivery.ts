import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { isWebhookProven } from '@portico/sdk';

import { deliveryId, pushOf } from '../../../../extensions/deploy/src/triggers/delivery.ts';
import { pullRequestOf } from '../../../../extensions/deploy/src/triggers/pull-request.ts';
import { pullOf, pushOf as writePush, type Sender, signed } from '../forges/deliveries.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const senders: readonly Sender[] = ['github', 'gitea', 'gitlab'];
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const commit = 'b'.repeat(40);

/** Reads a delivery as a route does. */
function read(sender: Sender, [event, text]: readonly [string, string]) {
    const headers = signed(sender, event, text, secret);
    const body = Buffer.from(text);
    const isGood = isWebhookProven(headers, body, secret);
    return { headers, body, isGood, type: 'application/json' };
}

const pushed = (sender: Sender, said: object, more: object = {}) => {
    const [event, text] = writePush(sender, { commit, ...said });
    const { headers, body, type } = read(sender, [event, JSON.stringify({ ...JSON.parse(text), ...more })]);
    return pushOf(headers, type, body);
};
const pulled = (sender: Sender, said: object) => {
    const { headers, body, type } = read(
        sender,
        pullOf(sender, { number: 3, commit, action: 'opened', ...said })
    );
    return pullRequestOf(headers, type, body);
};

describe('pushOf', () => {
    for (const sender of senders) {
        it(`reads what ${sender} says of branches and tags, signed as it signs`, () => {
            const { isGood, headers, body } = read(sender, writePush(sender, { commit }));
            expect(isGood).to.be.true();
            expect(isWebhookProven(headers, Buffer.from(`${body.toString()} `), secret)).to.be.false();
            expect(
                isWebhookProven(headers, body, `whsec_${Buffer.alloc(32).toString('base64')}`)
            ).to.be.false();
            expect(deliveryId(headers)).to.be.a.string();
            expect(pushed(sender, { message: 'Mend', files: ['a/b.ts'] })).to.equal({
                ...{ kind: 'branch', name: 'main', commit, message: 'Mend', files: ['a/b.ts'] }
            });
            expect(pushed(sender, { ref: 'refs/tags/v1' })).to.include({ kind: 'tag', name: 'v1' });
            expect(pushed(sender, { ref: 'refs/heads/gone', commit: '0'.repeat(40) })).to.be.null();
        });
    }

    it('knows no files where the server leaves commits or their files out', () => {
        expect(pushed('gitea', { files: null })?.files).to.be.null();
        expect(pushed('gitea', { files: ['a'] }, { total_commits: 6 })?.files).to.be.null();
        expect(pushed('gitlab', { files: ['a'] }, { total_commits_count: 21 })?.files).to.be.null();
        expect(pushed('github', { files: [] })?.files).to.equal([]);
    });
});

describe('pullRequestOf', () => {
    for (const sender of senders) {
        it(`reads what ${sender} says of pull requests, and leaves changes of their text alone`, () => {
            const ref = `refs/${sender === 'gitlab' ? 'merge-requests' : 'pull'}/3/head`;
            const said = { number: 3, ref, commit, branch: 'feature', target: 'main', fork: false };
            expect(pulled(sender, {})).to.equal({ ...said, change: 'head' });
            expect(pulled(sender, { action: 'pushed' })).to.equal({ ...said, change: 'head' });
            expect(pulled(sender, { action: 'closed' })).to.equal({ ...said, change: 'closed' });
            expect(pulled(sender, { action: 'edited' })).to.be.null();
            expect(pulled(sender, { fork: true, target: 'next' })).to.include({ fork: true, target: 'next' });
        });
    }
});
