import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { JSONRPCMessage } from '@modelcontextprotocol/server';

import { SessionEvents } from '../../../../extensions/mcpserver/src/protocol/event-store.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const message = (id: number, text = ''): JSONRPCMessage => ({ jsonrpc: '2.0', id, result: { text } });
const after = async (events: SessionEvents, id: string): Promise<unknown[]> => {
    const seen: unknown[] = [];
    await events.replayEventsAfter(id, {
        send: async (_id, each) => void seen.push('id' in each ? each.id : null)
    });
    return seen;
};

describe('SessionEvents', () => {
    it('gives what came after an event on its own stream', async () => {
        const events = new SessionEvents();
        const first = await events.storeEvent('a', message(1));
        await events.storeEvent('b', message(2));
        await events.storeEvent('a', message(3));
        expect(await after(events, first)).to.equal([3]);
        expect(await events.getStreamIdForEventId(first)).to.equal('a');
        expect(await events.getStreamIdForEventId('9.a')).to.be.undefined();
        expect(await after(events, '9.a')).to.equal([]);
    });

    it('keeps 256 events, 1 MiB and five minutes at most', async () => {
        let now = 0;
        const many = new SessionEvents(() => now);
        const ids: string[] = [];
        for (let n = 0; n < 300; n += 1) {
            ids.push(await many.storeEvent('a', message(n)));
        }
        expect(await many.getStreamIdForEventId(ids[43] ?? '')).to.be.undefined();
        expect(await after(many, ids[44] ?? '')).to.have.length(255);
        now = 300_001;
        expect(await after(many, ids[299] ?? '')).to.equal([]);
        expect(await many.getStreamIdForEventId(ids[299] ?? '')).to.be.undefined();

        const large = new SessionEvents(() => now);
        const big = await large.storeEvent('a', message(1, 'x'.repeat(600_000)));
        await large.storeEvent('a', message(2, 'x'.repeat(600_000)));
        expect(await large.getStreamIdForEventId(big)).to.be.undefined();
    });
});
