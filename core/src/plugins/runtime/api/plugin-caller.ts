/** The caller of what a plugin does for itself. */
import type { Caller } from '../../../platform/call.ts';

/** The plugin itself: no user, and only what its grants amount to. */
export function pluginCaller(plugin: string, can: (permission: string) => boolean): Caller {
    return {
        kind: 'plugin',
        id: null,
        username: null,
        role: null,
        tokenId: null,
        permissions: [],
        key: `plugin:${plugin}`,
        can,
        sessionId: null,
        plugin,
        fresh: false
    };
}
