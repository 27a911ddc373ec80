/** `/api/settings/channels`: manages notification channels, and shows their deliveries. */
import { joi, reply } from '@portico/sdk';

import { json, type Route } from '../../server/http/route.ts';
import type { Channels } from './channels/channels.ts';
import type { Deliveries } from './delivery/deliveries.ts';
import { eventNames } from './event-names.ts';
import type { Notifications } from './notifications.ts';
import {
    channelCreate,
    channelParams,
    channelUpdate,
    channelView,
    deliveryParams,
    deliveryQuery,
    deliveryView,
    eventNameView
} from './schema.ts';

const base = '/api/settings/channels';

/** The routes of channels and their deliveries. @param plugins - names of all plugins */
export function notificationRoutes(
    { channels, deliveries }: Pick<Notifications, 'channels' | 'deliveries'>,
    plugins: () => readonly string[]
): Route[] {
    return [...channelRoutes(channels), eventRoute(plugins), ...deliveryRoutes(deliveries)];
}

function eventRoute(plugins: () => readonly string[]): Route {
    return json({
        method: 'GET',
        path: `${base}/events`,
        id: 'channels.events',
        access: 'settings:read',
        summary: 'List the events that a channel can be told of',
        description: 'Each event of the core, and for each plugin the family of its events',
        returns: joi.array().items(eventNameView),
        handler: () => reply.list(eventNames(plugins()))
    });
}

function channelRoutes(channels: Channels): Route[] {
    return [
        json({
            method: 'GET',
            path: base,
            id: 'channels.list',
            access: 'settings:read',
            summary: 'List notification channels',
            returns: joi.array().items(channelView),
            handler: () => reply.list(channels.list())
        }),
        json({
            method: 'POST',
            path: base,
            id: 'channels.create',
            rehearses: true,
            access: 'settings:write',
            summary: 'Create a notification channel',
            description: 'A webhook without a secret gets one, which only this answer shows',
            secret: true,
            validate: { payload: channelCreate },
            returns: channelView,
            handler: (request) => channels.create(request.payload, request)
        }),
        json({
            method: 'GET',
            path: `${base}/{id}`,
            id: 'channels.get',
            access: 'settings:read',
            summary: 'Read a notification channel',
            validate: { params: channelParams },
            returns: channelView,
            handler: ({ params }) => reply.with(channels.get(params.id), {})
        }),
        json({
            method: 'PUT',
            path: `${base}/{id}`,
            id: 'channels.update',
            rehearses: true,
            access: 'settings:write',
            summary: 'Change a notification channel',
            validate: { params: channelParams, payload: channelUpdate },
            returns: channelView,
            handler: (request) => channels.update(request.params.id, request.payload, request)
        }),
        json({
            method: 'DELETE',
            path: `${base}/{id}`,
            id: 'channels.remove',
            rehearses: true,
            access: 'settings:write',
            summary: 'Remove a notification channel with its deliveries',
            validate: { params: channelParams },
            returns: joi.valid(null),
            handler: (request) => channels.remove(request.params.id, request)
        })
    ];
}

function deliveryRoutes(deliveries: Deliveries): Route[] {
    return [
        json({
            method: 'POST',
            path: `${base}/{id}/test`,
            id: 'channels.test',
            access: 'settings:write',
            summary: 'Send a test message by a channel now',
            description:
                'The answer is the delivery, delivered or failed, with the answer of the receiver. It is not tried again',
            answers: [200],
            timeoutSeconds: 60,
            audit: { action: 'run', resource: 'channels' },
            validate: { params: channelParams },
            returns: deliveryView,
            handler: (request) => deliveries.test(request.params.id, request)
        }),
        json({
            method: 'GET',
            path: `${base}/{id}/deliveries`,
            id: 'channels.deliveries',
            access: 'settings:read',
            summary: 'List the deliveries of a channel, newest first',
            description: 'The waiting deliveries, and the last 200 that ended',
            validate: { params: channelParams, query: deliveryQuery },
            returns: joi.array().items(deliveryView),
            handler: ({ params, query }) => deliveries.list(params.id, query)
        }),
        json({
            method: 'POST',
            path: `${base}/{id}/deliveries/{n}/replay`,
            id: 'channels.replay',
            access: 'settings:write',
            summary: 'Send a message again',
            description:
                'With the same message id. A delivery that ended is repeated as a new one; one that waits becomes due now',
            answers: [200],
            audit: { action: 'run', resource: 'channels' },
            fails: ['CONFLICT'],
            validate: { params: deliveryParams },
            returns: deliveryView,
            handler: (request) => deliveries.replay(request.params.id, request.params.n, request)
        })
    ];
}
