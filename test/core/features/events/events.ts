import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { PanelEvents } from '../../../../core/src/features/events/events.ts';
import { caller } from '../../../support/core/http-ports.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const reader = caller('reader', ['things:read']);
const stranger = caller('stranger', []);
const routes = (events: PanelEvents, plugin: string): void =>
    events.publish({ event: 'routes', data: { plugin }, isVisible: ({ can }) => can('things:read') });

function listening(
    events: PanelEvents,
    more: Partial<Parameters<PanelEvents['listen']>[0]> = {}
): { next(): Promise<unknown>; end(): Promise<void> } {
    const controller = new AbortController();
    const iterator = events.listen({
        caller: reader,
        topics: null,
        lastEventId: null,
        signal: controller.signal,
        ...more
    });
    return {
        next: async () => (await iterator.next()).value as unknown,
        async end() {
            controller.abort();
            await iterator.return(undefined);
        }
    };
}

describe('PanelEvents', () => {
    it('tells each listener what it asks for and may see, and forgets it when it leaves', async () => {
        const events = new PanelEvents();
        const [all, some, none] = [
            listening(events),
            listening(events, { topics: new Set(['tasks']) }),
            listening(events, { caller: stranger })
        ];
        const waiting = [all, some, none].map((each) => each.next());
        await Promise.resolve();
        expect(events.listeners).to.equal(3);
        routes(events, 'a');
        events.publish({
            event: 'tasks',
            data: { id: 1, kind: 'x', state: 'queued', progress: null },
            isVisible: () => true
        });
        const [first, second, third] = (await Promise.all(waiting)) as { event: string }[];
        expect([first?.event, second?.event, third?.event]).to.equal(['routes', 'tasks', 'tasks']);
        await Promise.all([all.end(), some.end(), none.end()]);
        expect(events.listeners).to.equal(0);
    });

    it('goes on after an event that it kept, and says what it no longer has', async () => {
        const events = new PanelEvents();
        const first = listening(events);
        const known = first.next();
        await Promise.resolve();
        routes(events, 'a');
        const { id } = (await known) as { id: string };
        await first.end();
        routes(events, 'b');
        const second = listening(events, { lastEventId: id });
        expect(await second.next()).to.include({ event: 'routes', data: { plugin: 'b' } });
        await second.end();
        for (let n = 0; n < 5_000; n += 1) {
            routes(events, String(n));
        }
        const third = listening(events, { lastEventId: id });
        const gap = (await third.next()) as { event: string; data: { missed: number } };
        expect(gap.event).to.equal('gap');
        expect(gap.data.missed).to.equal(4_001);
        const next = (await third.next()) as { data: { plugin: string } };
        expect(next.data.plugin).to.equal(String(gap.data.missed - 1));
        await third.end();
        for (const lastEventId of ['x.1', `${id.split('.')[0]}.99999`, 'nonsense']) {
            const other = listening(events, { lastEventId });
            expect(await other.next(), lastEventId).to.include({ event: 'gap', data: { missed: null } });
            await other.end();
        }
    });
});
