/** Routes of what the kernel has: apply, confirm, revert, off, state and history. */
import { joi, type Request } from '@portico/sdk';

import type { Model } from '../../draft/model.ts';
import { findLockOut } from '../../reach/lock-out.ts';
import { panelWays } from '../../reach/panel-ways.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { stateOf, stateView } from '../state.ts';

const confirmSeconds = joi
    .number()
    .integer()
    .min(5)
    .max(600)
    .default(60)
    .label('Confirm within')
    .unit('second')
    .description('Unless it is confirmed by then, the ruleset of before comes back');
const trialView = joi.object({
    trialId: joi.string().required().label('Trial'),
    until: joi.string().isoDate().required().label('Until')
});
const trialPayload = joi.object({ trialId: joi.string().max(64).required().label('Trial') });

/** Registers the routes that change what the kernel has. */
export function registerTrialRoutes(ctx: Ctx, services: Services): void {
    registerApply(ctx, services);
    registerOff(ctx, services);
    registerEnds(ctx, services);
}

function registerApply(ctx: Ctx, services: Services): void {
    const { firewall } = services;
    ctx.route({
        method: 'POST',
        path: '/apply',
        id: 'apply',
        access: 'apply',
        summary: 'Give the draft to the kernel, for a trial',
        description: 'All of it or nothing. Connections that stand live on.',
        answers: 'done',
        timeoutSeconds: 120,
        ui: {
            title: 'Apply',
            role: 'action',
            primary: true,
            confirm: 'Try these rules? Confirm them in time, or the ones of before come back.'
        },
        returns: trialView,
        audit: { action: 'apply', resource: 'firewall' },
        validate: {
            payload: joi.object({
                confirmSeconds,
                acceptLockOut: joi
                    .boolean()
                    .default(false)
                    .label('Even if it locks me out')
                    .description('Tries rules that refuse your next connection, for 120 s at most')
                    .meta({ ui: { advanced: true } })
            })
        },
        async handler(request) {
            const { payload, actor, audit } = request;
            const trial = await firewall.apply({
                ...payload,
                by: actor.username,
                lockOut: (model) => lockOutOf(ctx, services, model, request)
            });
            audit({ resourceId: trial.trialId, after: payload });
            return trial;
        }
    });
}

function registerOff(ctx: Ctx, { firewall }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/off',
        id: 'off',
        access: 'apply',
        stepUp: true,
        summary: 'Take the own table away, for a trial',
        answers: 'done',
        timeoutSeconds: 120,
        ui: {
            title: 'Switch off',
            role: 'action',
            confirm: 'Remove all rules and bans of the panel from the kernel?'
        },
        returns: trialView,
        audit: { action: 'off', resource: 'firewall' },
        validate: { payload: joi.object({ confirmSeconds }) },
        async handler({ payload, actor, audit }) {
            const trial = await firewall.off({ ...payload, by: actor.username });
            audit({ resourceId: trial.trialId });
            return trial;
        }
    });
}

function registerEnds(ctx: Ctx, services: Services): void {
    const { firewall } = services;
    for (const action of ['confirm', 'revert'] as const) {
        ctx.route({
            method: 'POST',
            path: `/${action}`,
            id: action,
            access: 'apply',
            summary: action === 'confirm' ? 'Keep what is on trial' : 'Give back the ruleset of before',
            answers: 'done',
            timeoutSeconds: 120,
            ui: { title: action === 'confirm' ? 'Confirm' : 'Revert', role: 'action' },
            returns: stateView,
            audit: { action, resource: 'firewall' },
            validate: { payload: trialPayload },
            async handler({ payload, audit }) {
                audit({ resourceId: payload.trialId });
                await firewall[action](payload.trialId);
                return stateOf(services);
            }
        });
    }
}

/** How the caller of a request came here. */
function callerOf({ ip, headers }: Pick<Request, 'ip' | 'headers'>): {
    readonly ip: string;
    readonly host: string | undefined;
} {
    return { ip, host: headers['host'] };
}

/** The caller's ways to the panel that rules would close. */
export function lockOutOf(
    ctx: Ctx,
    { machine, evaluator }: Services,
    model: Model,
    request: Pick<Request, 'ip' | 'headers'>
): ReturnType<typeof findLockOut> {
    return findLockOut(model, callerOf(request), {
        machine,
        evaluator,
        ways: (caller) => panelWays(ctx, caller)
    });
}
