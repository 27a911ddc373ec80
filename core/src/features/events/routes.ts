/** `GET /api/events`: what happens in the panel, as it happens. */
import { type Route, stream } from '../../server/http/route.ts';
import type { PanelEvents } from './events.ts';
import { eventsQuery, panelEvents } from './schema.ts';

/** The route of the panel's events. */
export function eventRoutes(events: PanelEvents): Route[] {
    return [
        stream({
            path: '/api/events',
            id: 'events.follow',
            access: 'authenticated',
            summary: 'Follow what happens in the panel',
            description:
                'One event for each change, named by its topic, with ids and not with whole objects. The caller sees what its permissions show at that moment. With `Last-Event-ID` it goes on after that event; `gap` says that events were missed',
            validate: { query: eventsQuery },
            events: panelEvents,
            ui: { role: 'hidden' },
            handler: ({ query, actor, lastEventId, signal }) =>
                events.listen({
                    caller: actor,
                    topics: query.topics === undefined ? null : new Set(query.topics.split(',')),
                    lastEventId,
                    signal
                })
        })
    ];
}
