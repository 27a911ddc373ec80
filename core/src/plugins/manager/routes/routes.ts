/** `/api/plugins`: the plugins that are there, decisions about them, and what the npm registry offers. */
import type { InstallSource } from '@portico/registry';
import { joi, type Reply, reply, type Request, type Value } from '@portico/sdk';

import { fail, invalid } from '../../../platform/errors.ts';
import { type TaskView, taskView } from '../../../server/http/answer/task-view.ts';
import { type CoreRequest, json, type Route } from '../../../server/http/route.ts';
import type { Installer } from '../install/installer.ts';
import type { InstallRequest } from '../install/ports.ts';
import { type InstallPreview, installPreview } from '../install/schema.ts';
import type { PluginLogs } from '../logs/plugin-logs.ts';
import { pluginLogRoute } from '../logs/routes.ts';
import {
    offerView,
    pluginDetail,
    pluginInstall,
    pluginInstallQuery,
    pluginParams,
    pluginQuery,
    pluginRemoveQuery,
    type PluginUpdate,
    pluginUpdate,
    pluginUpdateQuery,
    pluginView
} from './schema.ts';
import type { PluginService } from './service.ts';

const base = '/api/plugins';
const resource = 'plugins';
/** A plugin may take long to stop and to start. */
const changeSeconds = 180;
const offersSeconds = 330;

/** An archive that `npm pack` makes. */
const archives = { types: ['application/gzip', 'application/octet-stream'], maxBytes: 64 * 1024 * 1024 };

/** The routes of `/api/plugins`. */
export function pluginRoutes(plugins: PluginService, installer: Installer, logs: PluginLogs): Route[] {
    return [
        ...readRoutes(plugins),
        pluginLogRoute(plugins, logs),
        updateRoute(plugins, installer),
        ...installRoutes(installer)
    ];
}

function readRoutes(plugins: PluginService): Route[] {
    return [
        json({
            method: 'GET',
            path: base,
            id: 'plugins.list',
            fails: ['TOOL_MISSING'],
            access: 'plugins:read',
            summary: 'List plugins, or what the npm registry offers',
            timeoutSeconds: offersSeconds,
            description:
                'All that are known, in the order in which they start. In safe mode the answer has the header `X-Portico-Safe-Mode`, and the message says why and how to leave it',
            validate: { query: pluginQuery },
            returns: joi.array().items(joi.alternatives(pluginView, offerView)),
            handler: ({ query, signal }) =>
                query.available === 'true' ? plugins.offers(signal) : plugins.list()
        }),
        json({
            method: 'GET',
            path: `${base}/{name}`,
            id: 'plugins.get',
            fails: ['PLUGIN_NOT_FOUND'],
            access: 'plugins:read',
            summary: 'Read a plugin with its settings',
            timeoutSeconds: 30,
            validate: { params: pluginParams },
            returns: pluginDetail,
            handler: ({ params }) => plugins.get(params.name)
        })
    ];
}

function updateRoute(plugins: PluginService, installer: Installer): Route {
    return json({
        method: 'PUT',
        path: `${base}/{name}`,
        id: 'plugins.update',
        access: 'plugins:manage',
        audit: { action: 'update', resource },
        summary: 'Enable, disable or configure a plugin, or grant it what it asks for',
        timeoutSeconds: changeSeconds,
        answers: [200, 202],
        fails: [
            'PLUGIN_NOT_FOUND',
            'CONSENT_REQUIRED',
            'DATA_AHEAD',
            'IN_USE',
            'STEP_UP_REQUIRED',
            'PLUGIN_FAILED'
        ],
        description:
            'With another `version` it is a task, `plugin.upgrade` or `plugin.rollback`, without one failed request. Otherwise it answers when it is done, with the state that came of it: a plugin that fails to start is answered with 200, the state `failed` and the reason',
        validate: { params: pluginParams, query: pluginUpdateQuery, payload: pluginUpdate },
        returns: joi.alternatives(pluginDetail, taskView, installPreview),
        handler(request) {
            const { params, payload, query } = request;
            request.audit({ resourceId: params.name });
            // A read that is sent back names the version that is there.
            const { version } = payload;
            if (version !== undefined && version !== plugins.versionOf(params.name)) {
                return changeVersion(installer, params.name, version, payload, request);
            }
            if (payload.dryRun === true) {
                throw invalid({ path: 'dryRun', message: 'dryRun needs another version' });
            }
            return plugins.update(params.name, payload, request, { cascade: query.cascade === 'true' });
        }
    });
}

async function changeVersion(
    installer: Installer,
    name: string,
    version: string,
    { enabled, grants, settings, force, restoreData, adopt, dryRun }: PluginUpdate,
    call: CoreRequest & Request
): Promise<Reply<TaskView> | InstallPreview> {
    if (adopt === true || enabled === false) {
        const path = adopt === true ? 'adopt' : 'enabled';
        throw invalid({
            path,
            message: `${path} and version are two changes: send them one after the other`
        });
    }
    if (call.actor.kind !== 'system' && !call.actor.fresh) {
        throw fail.STEP_UP_REQUIRED(); // as for an install: it brings other code
    }
    const change = { version, enabled, grants, settings, force, restoreData };
    if (dryRun === true) {
        call.audit({ action: 'preview' });
        return installer.previewChange(name, change, call);
    }
    return reply.accepted(await installer.change(name, change, call));
}

function installRoutes(installer: Installer): Route[] {
    return [
        json({
            method: 'POST',
            path: base,
            id: 'plugins.install',
            access: 'plugins:manage',
            stepUp: true,
            summary: 'Install a plugin',
            answers: [200, 202],
            bytes: archives,
            timeoutSeconds: offersSeconds,
            fails: ['IN_USE', 'NOT_FOUND'],
            description:
                'From the npm registry, or an archive that is the body itself. Installing the version that is there again brings its package anew, without one failed request',
            validate: { query: pluginInstallQuery, payload: pluginInstall },
            returns: joi.alternatives(taskView, installPreview),
            handler: async (request) => {
                const { source, decided, isPreview } = installOf(request.payload, request.query);
                if (isPreview) {
                    request.audit({ action: 'preview' });
                    return installer.previewInstall(source, decided, request);
                }
                return reply.accepted(await installer.install(source, decided, request));
            }
        }),
        json({
            method: 'DELETE',
            path: `${base}/{name}`,
            id: 'plugins.remove',
            access: 'plugins:manage',
            audit: { action: 'uninstall', resource },
            summary: 'Uninstall a plugin',
            timeoutSeconds: changeSeconds,
            fails: ['PLUGIN_NOT_FOUND', 'IN_USE'],
            description:
                'Its data stay unless `purge` is `true`: installed again, the same package finds them, and its settings. The message says what its end let go of',
            validate: { params: pluginParams, query: pluginRemoveQuery },
            returns: joi.any().valid(null),
            handler(request) {
                const { params, query } = request;
                request.audit({ resourceId: params.name });
                return installer.uninstall(
                    params.name,
                    {
                        purge: query.purge === 'true',
                        cascade: query.cascade === 'true',
                        force: query.force === 'true'
                    },
                    request
                );
            }
        })
    ];
}

/** What an install brings, and what is decided with it: a body of JSON, or an archive with a query. */
function installOf(
    payload: Value<typeof pluginInstall> | Uint8Array,
    query: Value<typeof pluginInstallQuery>
): { readonly source: InstallSource; readonly decided: InstallRequest; readonly isPreview: boolean } {
    if (payload instanceof Uint8Array) {
        const { enabled, integrity, dryRun } = query;
        return {
            source: { tarball: payload, ...(integrity === undefined ? {} : { integrity }) },
            decided: { enabled: enabled === undefined ? undefined : enabled === 'true' },
            isPreview: dryRun === 'true'
        };
    }
    const { package: name, version, integrity, enabled, grants, dryRun } = payload;
    return {
        source: {
            package: name,
            ...(version === undefined ? {} : { version }),
            ...(integrity === undefined ? {} : { integrity })
        },
        decided: { enabled, grants },
        isPreview: dryRun === true
    };
}
