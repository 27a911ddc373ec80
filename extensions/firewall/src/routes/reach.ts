/** Routes of what listens, and of what is reachable from where. */
import { isFailure, joi } from '@portico/sdk';

import { mapReachability } from '../reach/reachability.ts';
import { listListeners } from '../reach/sockets.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { modelOf } from './simulation.ts';

/** Registers `/listeners` and `/reachability`. */
export function registerReachRoutes(ctx: Ctx, services: Services): void {
    registerListeners(ctx, services);
    registerReachability(ctx, services);
}

function registerListeners(ctx: Ctx, { foreign, machine }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/listeners',
        id: 'listeners',
        access: 'read',
        summary: 'Programs that listen',
        ui: { title: 'Listeners', order: 7, label: 'program' },
        returns: joi.array().items(
            joi.object({
                protocol: joi
                    .choice({ tcp: 'TCP', udp: 'UDP' })
                    .required()
                    .label('Protocol')
                    .meta({ ui: { column: 1 } }),
                address: joi
                    .string()
                    .required()
                    .label('Address')
                    .meta({ ui: { column: 2 } }),
                port: joi
                    .number()
                    .integer()
                    .required()
                    .label('Port')
                    .meta({ ui: { column: 3 } }),
                pid: joi
                    .number()
                    .integer()
                    .allow(null)
                    .required()
                    .label('Process')
                    .meta({ ui: { column: 5 } }),
                program: joi
                    .string()
                    .allow(null)
                    .required()
                    .label('Program')
                    .meta({ ui: { column: 4 } }),
                user: joi
                    .string()
                    .allow(null)
                    .required()
                    .label('User')
                    .description('The number of a user that this machine does not name')
                    .meta({ ui: { column: 6 } }),
                container: joi
                    .string()
                    .allow(null)
                    .required()
                    .label('Container')
                    .description('Where a published port leads')
                    .meta({ ui: { column: 7 } })
            })
        ),
        async handler() {
            const [published, users] = [await foreign.published(), await machine.users()];
            return (await listListeners(ctx)).map(({ protocol, text, port, pid, program, uid }) => ({
                protocol,
                address: text,
                port,
                pid,
                program,
                user: uid === null ? null : (users.get(uid) ?? uid),
                container:
                    published.find((each) => each.protocol === protocol && each.port === port)?.target ?? null
            }));
        }
    });
}

function registerReachability(ctx: Ctx, services: Services): void {
    const { machine, foreign, evaluator, store } = services;
    ctx.route({
        method: 'GET',
        path: '/reachability',
        id: 'reachability',
        access: 'read',
        summary: 'What is reachable from each zone and from the internet',
        description: 'By what is applied; while the firewall is off, by the draft.',
        ui: { title: 'Reachable', order: 7, label: 'target' },
        returns: joi.array().items(
            joi.object({
                target: joi
                    .string()
                    .required()
                    .label('Target')
                    .meta({ ui: { column: 1 } }),
                port: joi
                    .number()
                    .integer()
                    .required()
                    .label('Port')
                    .meta({ ui: { column: 2 } }),
                from: joi
                    .string()
                    .required()
                    .label('From')
                    .meta({ ui: { column: 3 } }),
                kind: joi
                    .choice({ host: 'Site', container: 'Container', listener: 'Program' })
                    .required()
                    .label('Kind')
                    .meta({ ui: { column: 4 } }),
                verdict: joi
                    .choice({ accept: 'Reachable', drop: 'Dropped', reject: 'Rejected' })
                    .required()
                    .label('Verdict')
                    .meta({ ui: { column: 5, tones: { accept: 'warning', drop: 'good', reject: 'good' } } }),
                ruleId: joi
                    .number()
                    .integer()
                    .allow(null)
                    .required()
                    .label('Rule')
                    .meta({ ui: { column: 6 } })
            })
        ),
        async handler() {
            const { applied, trial } = await store.read();
            const isOff = (trial === null ? applied?.model : trial.model) == null;
            const model = await modelOf(services, isOff ? 'draft' : 'applied');
            const map = await mapReachability({
                ctx,
                machine,
                foreign,
                model,
                evaluator: await evaluator(model),
                hosts: await hostsOf(ctx)
            });
            return map.map((each) => ({ ...each }));
        }
    });
}

/** The ports of the engine with the domains that it serves; none without the grants for it. */
async function hostsOf(
    ctx: Ctx
): Promise<readonly { readonly port: number; readonly domains: readonly string[] }[]> {
    try {
        const domains = (await ctx.hosts.list()).filter(({ enabled }) => enabled).map(({ domain }) => domain);
        const listeners = await ctx.panel.listeners();
        return listeners
            .filter(({ role, protocol }) => role !== 'panel' && protocol === 'tcp')
            .map(({ port }) => ({ port, domains }));
    } catch (error) {
        if (isFailure(error)) {
            return [];
        }
        throw error;
    }
}
