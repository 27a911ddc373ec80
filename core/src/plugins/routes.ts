/** `/api/plugins`: what is there, what is decided about it, and what the registry offers. */
import { joi } from '@portico/sdk';
import { json, type Route } from '../http/route.ts';
import { offerView, pluginDetail, pluginParams, pluginQuery, pluginUpdate, pluginUpdateQuery, pluginView } from './schema.ts';
import type { PluginService } from './service.ts';

const base = '/api/plugins';
/** A plugin may take its time to stop and to start. */
const changeSeconds = 180;
const offersSeconds = 330;

export function pluginRoutes(plugins: PluginService): Route[] {
    return [
        json({
            method: 'GET', path: base, id: 'plugins.list', fails: ['TOOL_MISSING'], access: 'plugins:read', summary: 'List plugins, or what the npm registry offers', timeoutSeconds: offersSeconds,
            description: 'All that are known, in the order in which they start. In safe mode the answer has the header `X-Portico-Safe-Mode`, and the message says why and how to leave it',
            validate: { query: pluginQuery }, returns: joi.array().items(joi.alternatives(pluginView, offerView)),
            handler: ({ query, signal }) => (query.available === 'true' ? plugins.offers(signal) : plugins.list()) as never
        }),
        json({
            method: 'GET', path: `${base}/{name}`, id: 'plugins.get', fails: ['PLUGIN_NOT_FOUND'], access: 'plugins:read', summary: 'Read a plugin with its settings', timeoutSeconds: 30,
            validate: { params: pluginParams }, returns: pluginDetail,
            handler: ({ params }) => plugins.get(params.name) as never
        }),
        json({
            method: 'PUT', path: `${base}/{name}`, id: 'plugins.update', access: 'plugins:manage', summary: 'Enable, disable or configure a plugin, or grant it what it asks for', timeoutSeconds: changeSeconds,
            fails: ['PLUGIN_NOT_FOUND', 'CONSENT_REQUIRED', 'IN_USE', 'STEP_UP_REQUIRED', 'PLUGIN_FAILED'],
            description: 'Answers when it is done, with the state that came of it: a plugin that fails to start is answered with 200, the state `failed` and the reason',
            validate: { params: pluginParams, query: pluginUpdateQuery, payload: pluginUpdate }, returns: pluginDetail,
            handler: (request) => plugins.update(request.params.name, request.payload, request, { cascade: request.query.cascade === 'true' }) as never
        })
    ];
}
