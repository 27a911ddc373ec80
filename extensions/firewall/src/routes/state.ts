/** Where the firewall stands. */
import { isFailure, joi, type Value } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** The state in answers. */
export const stateView = joi.object({
    state: joi
        .choice({ off: 'Off', applied: 'Applied', trial: 'On trial' })
        .required()
        .label('State')
        .meta({ ui: { tones: { off: 'neutral', applied: 'good', trial: 'busy' } } }),
    draftVersion: joi.number().integer().required().label('Version of the draft'),
    appliedVersion: joi.number().integer().allow(null).required().label('Applied version'),
    differs: joi.boolean().required().label('The draft differs').description('From what is applied'),
    drift: joi
        .boolean()
        .allow(null)
        .required()
        .label('Changed by others')
        .description('The own table is not what the panel made of it; null where `nft` cannot say'),
    trial: joi
        .object({
            id: joi.string().required().label('Trial'),
            until: joi.string().isoDate().required().label('Until'),
            by: joi.string().allow(null).required().label('By')
        })
        .allow(null)
        .required()
        .label('Trial'),
    lastOutcome: joi
        .choice({ confirmed: 'Confirmed', reverted: 'Reverted', expired: 'Not confirmed in time' })
        .allow(null)
        .required()
        .label('How the last trial ended'),
    persisted: joi.boolean().required().label('Loaded at boot'),
    foreign: joi
        .array()
        .items(
            joi.object({
                tool: joi.string().required().label('Program'),
                active: joi.boolean().required().label('Active'),
                tables: joi.array().items(joi.string()).required().label('Tables'),
                rules: joi.number().integer().required().label('Rules')
            })
        )
        .required()
        .label('Other programs'),
    warnings: joi.array().items(joi.string()).required().label('Warnings')
});
/** The state in answers. */
export type StateView = Value<typeof stateView>;

/** Declares the routes below `/state`. */
export function registerStateRoutes(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: '/state',
        id: 'state',
        access: 'read',
        summary: 'Where the firewall stands',
        ui: {
            title: 'State',
            role: 'card',
            primary: true,
            order: 1,
            deadline: {
                until: 'trial.until',
                question: 'Keep these rules?',
                keep: 'firewall.confirm',
                undo: 'firewall.revert',
                body: { trialId: 'trial.id' }
            }
        },
        returns: stateView,
        handler: () => stateOf(services)
    });
}

/** Reads what `/state` shows. Drift and foreign rules are null when the kernel could not be asked. */
export async function stateOf({ store, draft, firewall, foreign }: Services): Promise<StateView> {
    const drift = await orNull(firewall.hasDrifted());
    const { applied, trial, lastOutcome, isPersistent } = await store.read();
    return {
        state: trial !== null ? 'trial' : applied === null ? 'off' : 'applied',
        draftVersion: await draft.version(),
        appliedVersion: applied?.version ?? null,
        differs: await firewall.differs(),
        drift,
        trial:
            trial === null
                ? null
                : { id: trial.id, until: new Date(trial.until).toISOString(), by: trial.by },
        lastOutcome,
        persisted: isPersistent,
        foreign: (await foreign.tools()).map((each) => ({ ...each, tables: [...each.tables] })),
        warnings: [...(await foreign.warnings(await draft.model()))]
    };
}

/** The value; null where `nft` is missing, not permitted or broken: what needs no kernel works without it. */
export async function orNull<T>(value: Promise<T>): Promise<T | null> {
    try {
        return await value;
    } catch (error) {
        if (isFailure(error)) {
            return null;
        }
        throw error;
    }
}
