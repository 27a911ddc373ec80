/** The part of the host API behind `ctx.services`. */
import type { HostApi } from '@portico/sdk/host';

import type { PluginServices } from '../programs/services.ts';
import type { Callers } from './callers.ts';

/** Makes the part of the host API for services. */
export function servicesApi(
    services: PluginServices,
    callers: Callers
): Pick<HostApi, 'putService' | 'listServices' | 'changeService' | 'removeService' | 'serviceOutput'> {
    return {
        putService: async ({ name, options }) => services.put(name, options),
        listServices: async () => services.list(),
        changeService: async ({ name, change }) => services.change(name, change),
        removeService: async ({ name }) => services.remove(name),
        serviceOutput: async ({ name, tail, follow, signal }) => ({
            lines: services.output(name, { tail, follow, signal: callers.untilEnd(signal) })
        })
    };
}
