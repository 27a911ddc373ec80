/** Stacks of partners. */
import { type Call, errors } from '@portico/sdk';

import { execute } from '../containers/exec.ts';
import type { ContainerContract, ContainerLogLine } from '../contract.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import { nameOf, viewOf } from '../stacks/planner.ts';
import type { StackView } from '../stacks/view.ts';
import { applySchema, checked, controlSchema, execSchema, planSchema, rollbackSchema } from './input.ts';
import { createPerform, findOwned, getOwned } from './owned.ts';

type StackMethods = Pick<
    ContainerContract,
    'engine' | 'plan' | 'apply' | 'stack' | 'control' | 'rollback' | 'remove' | 'logs' | 'exec'
>;

const mostLines = 100_000;

/** The methods of stacks. */
export function createStackMethods(ctx: Ctx, services: Services): StackMethods {
    const { engine, stacks } = services;
    return {
        async engine() {
            const { kind, version, arch } = await engine.info();
            return { kind, version, arch };
        },
        async plan(input, { plugin }) {
            return viewOf(await stacks.plan({ ...checked(planSchema, input), owner: plugin }));
        },
        stack: ({ name }, { plugin }) => findOwned(services, name, plugin),
        ...createChangeMethods(ctx, services),
        logs: (input, call) => readLogs(services, input, call),
        exec: (input, call) => run(services, input, call)
    };
}

function createChangeMethods(
    ctx: Ctx,
    services: Services
): Pick<StackMethods, 'apply' | 'control' | 'rollback' | 'remove'> {
    const { changes, store, snapshots } = services;
    const perform = createPerform(ctx, services);
    const mustBeThere = async (view: Promise<StackView | null>): Promise<StackView> => {
        const found = await view;
        if (found === null) {
            throw errors.notFound('There is no stack of that name');
        }
        return found;
    };
    return {
        async apply(input, call) {
            const { name, description, ...rest } = checked(applySchema, input);
            const { actor, plugin } = call;
            const given = { ...rest, consent: consentOf(rest.consent, call) };
            const work =
                (await store.find(name)) === null
                    ? await changes.create({ ...given, name, description: description ?? '' }, call)
                    : await changes.update(name, { ...given, description }, { actor, plugin, ifMatch: null });
            return mustBeThere(perform(work, call));
        },
        async control(input, call) {
            const { stack, action, services: names, pull } = checked(controlSchema, input);
            await changes.mine(stack, call.plugin);
            const work = await changes.act(stack, action, { services: names, pull }, call);
            await perform(work, call);
            return getOwned(services, stack, call.plugin);
        },
        async rollback(input, call) {
            const { stack, revision, waitSeconds, consent } = checked(rollbackSchema, input);
            const work = await changes.rollback(
                stack,
                {
                    revision,
                    waitSeconds,
                    start: true,
                    onFailure: 'rollback',
                    consent: consentOf(consent, call)
                },
                call
            );
            return mustBeThere(perform(work, call));
        },
        async remove({ stack, volumes = false }, call) {
            if ((await findOwned(services, stack, call.plugin)) === null) {
                return { removed: false };
            }
            await perform(await changes.remove(stack, volumes, call), call);
            await snapshots.dropAll(stack);
            return { removed: true };
        }
    };
}

/** Consent is a person's: the one who is acted for must be allowed to give it. @throws FORBIDDEN 40300 */
function consentOf(consent: string | undefined, { actor }: Call): string | null {
    if (consent !== undefined && actor?.can('write') !== true) {
        throw errors.forbidden('container:write');
    }
    return consent ?? null;
}

async function* readLogs(
    services: Services,
    { stack, service, tail = 200, follow = false }: Parameters<StackMethods['logs']>[0],
    { plugin, signal }: Call
): AsyncGenerator<ContainerLogLine> {
    await getOwned(services, stack, plugin);
    const lines = await services.logs.stack(stack, service, {
        follow,
        tail: Math.max(0, Math.min(mostLines, Math.floor(tail))),
        after: null,
        signal
    });
    for await (const { at, stream, text, service: of = '' } of lines) {
        yield { at, stream, text, service: of };
    }
}

async function run(
    services: Services,
    input: Parameters<StackMethods['exec']>[0],
    { plugin, signal }: Call
): ReturnType<StackMethods['exec']> {
    const { stack, service, ...command } = checked(execSchema, input);
    await getOwned(services, stack, plugin);
    const [first] = (await services.inventory.list(stack))
        .filter(({ Labels: labels, State }) => labels?.[labelOf.service] === service && State === 'running')
        .sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
    if (first === undefined) {
        throw errors.inUse(service, `No container of the service ${service} runs`);
    }
    return execute(services, first.Id, command, signal);
}
