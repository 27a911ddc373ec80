/** `/api/settings`: reads and changes settings. */
import { json, type Route } from '../../server/http/route.ts';
import { detectedView, keyParams, settingBody, settingsBody, settingsView, settingView } from './schema.ts';
import type { Settings } from './settings.ts';

/** The routes of settings. */
export function settingsRoutes(settings: Settings): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/settings',
            id: 'settings.list',
            access: 'settings:read',
            summary: 'List all settings',
            returns: settingsView,
            handler: () => settings.list()
        }),
        json({
            method: 'PUT',
            path: '/api/settings',
            id: 'settings.update',
            fails: ['STEP_UP_REQUIRED', 'ENGINE_REJECTED', 'ENGINE_UNAVAILABLE'],
            access: 'settings:write',
            summary: 'Change settings, all or nothing',
            description:
                'A body of `{ key: value }`; null resets a setting to its default. Settings of the engine are stored only if the engine takes them. Those that say who is believed or what may be reached need a fresh session',
            validate: { payload: settingsBody },
            returns: settingsView,
            handler: (request) => settings.update(request.payload, request)
        }),
        json({
            method: 'POST',
            path: '/api/settings/server-ip/detect',
            id: 'settings.detect',
            access: 'settings:write',
            summary: 'Find the addresses of this machine',
            description:
                "Looks at the machine's own network interfaces and stores a public address of each family where there is one; private ones are listed as candidates only. No other machine is asked",
            returns: detectedView,
            handler: (request) => settings.detect(request)
        }),
        json({
            method: 'GET',
            path: '/api/settings/{key}',
            id: 'settings.read',
            access: 'settings:read',
            summary: 'Read one setting',
            validate: { params: keyParams },
            returns: settingView,
            handler: ({ params }) => settings.read(params.key)
        }),
        json({
            method: 'PUT',
            path: '/api/settings/{key}',
            id: 'settings.updateOne',
            fails: ['STEP_UP_REQUIRED', 'ENGINE_REJECTED', 'ENGINE_UNAVAILABLE'],
            access: 'settings:write',
            summary: 'Change one setting',
            validate: { params: keyParams, payload: settingBody },
            returns: settingView,
            handler: (request) =>
                settings.updateOne(
                    request.params.key,
                    request.payload.value,
                    request,
                    request.payload.version
                )
        })
    ];
}
