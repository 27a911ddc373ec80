/** Routes of the bans of fail2ban and CrowdSec. */
import { joi } from '@portico/sdk';

import { readPeer } from '../address/interval.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const tool = joi.choice({ fail2ban: 'fail2ban', crowdsec: 'CrowdSec' });
const stateView = joi.object({
    tool: tool
        .required()
        .label('Program')
        .meta({ ui: { column: 1 } }),
    available: joi
        .boolean()
        .required()
        .label('Answers')
        .meta({ ui: { column: 2 } }),
    lists: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required().label('List'),
                addresses: joi.array().items(joi.string()).required().label('Addresses')
            })
        )
        .required()
        .label('Lists')
});

/** Registers the routes below `/intrusion`. */
export function registerIntrusionRoutes(ctx: Ctx, { intrusion }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/intrusion',
        id: 'intrusion',
        access: 'read',
        summary: 'Bans of fail2ban and CrowdSec',
        ui: { title: 'fail2ban, CrowdSec', order: 10, label: 'tool' },
        returns: joi.array().items(stateView),
        handler: async () =>
            (await intrusion.list()).map(({ lists, ...state }) => ({
                ...state,
                lists: lists.map(({ name, addresses }) => ({ name, addresses: [...addresses] }))
            }))
    });
    for (const change of ['ban', 'unban'] as const) {
        ctx.route({
            method: 'POST',
            path: `/intrusion/{tool}/${change}`,
            id: change === 'ban' ? 'intrusionBan' : 'intrusionUnban',
            access: 'ban',
            summary:
                change === 'ban' ? 'Have another program ban an address' : 'Lift a ban of another program',
            answers: 'done',
            ui: { title: change === 'ban' ? 'Ban' : 'Lift', role: 'action' },
            returns: joi.valid(null),
            audit: { action: change, resource: 'intrusion' },
            validate: {
                params: joi.object({ tool: tool.required().label('Program') }),
                payload: joi.object({
                    address: joi.string().min(2).max(64).required().label('Address'),
                    list: joi
                        .string()
                        .max(100)
                        .allow(null)
                        .default(null)
                        .label('List')
                        .description('A jail of fail2ban; needed where it has several')
                })
            },
            async handler({ params, payload, ip, audit }) {
                audit({ resourceId: params.tool, after: payload });
                await intrusion.change(params.tool, change, { ...payload, caller: readPeer(ip) });
                return null;
            }
        });
    }
}
