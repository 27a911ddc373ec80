/** The route of open ports. */
import { joi } from '@portico/sdk';

import { listPorts } from '../../processes/ports.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

/** One open port in an answer. */
export const portSchema = joi.object({
    protocol: joi
        .valid('tcp', 'udp')
        .required()
        .label('Protocol')
        .meta({ ui: { column: 2 } }),
    address: joi
        .string()
        .required()
        .label('Address')
        .description('0.0.0.0 and :: are every address')
        .meta({ ui: { column: 3 } }),
    port: joi
        .number()
        .integer()
        .required()
        .label('Port')
        .meta({ ui: { column: 1 } }),
    pid: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Process')
        .description('Null: it is in another namespace, or may not be seen')
        .meta({ ui: { column: 6 } }),
    process: joi
        .string()
        .allow(null, '')
        .required()
        .label('Name')
        .meta({ ui: { column: 4 } }),
    user: joi.string().allow(null).required().label('Account'),
    scope: joi
        .choice({ loopback: 'This machine', private: 'Private networks', all: 'Everyone' })
        .required()
        .label('Who can reach it')
        .description('By its address; a firewall may let in fewer')
        .meta({ ui: { column: 5, tones: { loopback: 'good', private: 'neutral', all: 'warning' } } })
});

/** Declares the routes below `/ports`. */
export function registerPortRoutes(ctx: Ctx, { machine }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/ports',
        id: 'ports',
        access: 'read',
        summary: 'Open ports and the processes behind them',
        ui: { title: 'Ports', order: 8, label: 'port', empty: 'No port is open' },
        returns: joi.array().items(portSchema),
        description:
            "TCP sockets that listen and UDP sockets without a peer, in the panel's network namespace. A port that processes share is listed for each of them.",
        handler: () => listPorts(machine)
    });
}
