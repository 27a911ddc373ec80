/** The route of everything that is not as it should be. */
import { collectFindings, unhealthySchema } from '../findings/unhealthy.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** Declares the route `/unhealthy`: everything that is wrong at present. */
export function registerUnhealthyRoutes(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: '/unhealthy',
        id: 'unhealthy',
        access: 'read',
        summary: 'What is not as it should be',
        ui: { title: 'Unhealthy', order: 5 },
        returns: unhealthySchema,
        description:
            'Alerts that fire, disks that are nearly full, gaps of the monitoring itself, checks that are down, and plugins, the proxy engine, hosts and their upstreams, certificates and failed tasks as far as you may see them.',
        handler: ({ actor, signal }) => collectFindings(ctx, services, actor, signal)
    });
}
