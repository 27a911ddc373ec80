/** Routes of bans. */
import { joi, pages, reply, type Value } from '@portico/sdk';

import { readPeer } from '../address/interval.ts';
import type { BanRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './id-params.ts';

const longestSeconds = 366 * 86_400;
const banView = joi.object({
    id: joi
        .number()
        .integer()
        .required()
        .label('Number')
        .meta({ ui: { column: false } }),
    address: joi
        .string()
        .required()
        .label('Address')
        .meta({ ui: { column: 1 } }),
    source: joi
        .choice({ manual: 'By hand', login: 'Failed logins' })
        .required()
        .label('Because of')
        .meta({ ui: { column: 2 } }),
    reason: joi
        .string()
        .allow(null)
        .required()
        .label('Reason')
        .meta({ ui: { column: 3 } }),
    createdAt: joi.string().isoDate().required().label('Since'),
    until: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Until')
        .description('null: until it is lifted')
        .meta({ ui: { column: 4 } }),
    packets: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Packets dropped')
        .meta({ ui: { column: 5 } })
});

/** Registers the routes below `/bans`. */
export function registerBanRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerChanges(ctx, services);
}

function registerList(ctx: Ctx, { bans }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/bans',
        id: 'bans',
        access: 'read',
        summary: 'Addresses that are banned',
        ui: { title: 'Bans', order: 2, label: 'address', empty: 'No address is banned' },
        returns: joi.array().items(banView),
        validate: {
            query: joi.object({
                ...pages.query(50, 10_000),
                q: joi.string().max(64).label('Address').description('A part of the address or of the reason')
            })
        },
        async handler({ query }) {
            const all = await bans.list();
            const { rows, page } = pages.ordered(
                all.filter(({ address, reason }) => `${address} ${reason ?? ''}`.includes(query.q ?? '')),
                query
            );
            return reply.list(rows.map(viewOf), page);
        }
    });
}

function registerChanges(ctx: Ctx, { bans }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/bans',
        id: 'createBan',
        access: 'ban',
        summary: 'Ban an address',
        description: 'Its packets are dropped at once. An address that is banned already gets the new end.',
        answers: 'made',
        ui: { title: 'Ban', primary: true },
        returns: banView,
        audit: { action: 'create', resource: 'ban' },
        validate: {
            payload: joi.object({
                address: joi
                    .string()
                    .min(2)
                    .max(64)
                    .required()
                    .label('Address')
                    .description('Or a prefix, at most a /16 of IPv4 or a /48 of IPv6'),
                seconds: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(longestSeconds)
                    .allow(null)
                    .default(null)
                    .label('For')
                    .unit('second')
                    .description('Empty: until it is lifted'),
                reason: joi
                    .string()
                    .allow(null, '')
                    .max(200)
                    .pattern(/^[^\p{C}]*$/u)
                    .default(null)
                    .label('Reason')
            })
        },
        async handler({ payload, ip, audit }) {
            const caller = readPeer(ip);
            const row = await bans.ban({
                ...payload,
                reason: payload.reason === '' ? null : payload.reason,
                source: 'manual',
                spared: caller === null ? [] : [caller]
            });
            audit({
                resourceId: row.id,
                after: { address: row.address, seconds: payload.seconds, reason: payload.reason }
            });
            return reply.created(`/api/plugins/${ctx.name}/bans/${row.id}`, viewOf({ ...row, packets: 0 }));
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/bans/{id}',
        id: 'liftBan',
        access: 'ban',
        summary: 'Lift a ban',
        answers: 'done',
        ui: { title: 'Lift' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'ban' },
        validate: { params: idParams },
        async handler({ params, audit }) {
            const { address } = await bans.lift(params.id);
            audit({ resourceId: params.id, before: { address } });
            return null;
        }
    });
}

function viewOf({
    id,
    address,
    source,
    reason,
    createdAt,
    until,
    packets
}: BanRow & { readonly packets: number | null }): Value<typeof banView> {
    return {
        id,
        address,
        source,
        reason,
        createdAt: new Date(createdAt).toISOString(),
        until: until === null ? null : new Date(until).toISOString(),
        packets
    };
}
