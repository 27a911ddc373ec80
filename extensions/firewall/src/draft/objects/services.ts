/** Services by name: the usual ones and those of the admin. */
import { errors } from '@portico/sdk';

import { faultsOfServicePorts, refuseFaults } from '../checks.ts';
import type { Draft } from '../draft.ts';
import { most, type Policy, type Service } from '../model.ts';
import { knownServices } from './known-services.ts';

/** Makes a service of the admin's own. @throws CONFLICT 40900 when the name is taken, VALIDATION_FAILED 40001 */
export function createService(draft: Draft, { name, ports }: Service): Promise<Service> {
    return draft.change((model) => {
        if (knownServices.has(name) || model.services.some((each) => each.name === name)) {
            throw errors.conflict('name');
        }
        refuseFaults([
            ...faultsOfServicePorts(ports),
            ...(model.services.length < most.services
                ? []
                : [{ path: '', message: `There are ${most.services} services already` }])
        ]);
        const made = { name, ports: [...new Set(ports)] };
        return { model: { ...model, services: [...model.services, made] }, result: made };
    });
}

/** Removes a service. @throws NOT_FOUND 40400, IN_USE 40901 */
export function removeService(draft: Draft, name: string): Promise<Service> {
    return draft.change((model) => {
        const found = model.services.find((each) => each.name === name);
        if (found === undefined) {
            throw errors.notFound(
                knownServices.has(name) ? `${name} is built in and stays` : 'There is no service of that name'
            );
        }
        const users = model.rules
            .filter(({ services }) => services.includes(name))
            .map(({ id }) => `rule ${id}`);
        if (users.length > 0) {
            throw errors.inUse(users);
        }
        return {
            model: { ...model, services: model.services.filter((each) => each !== found) },
            result: found
        };
    });
}

/** Changes the policies that are named. */
export function changePolicy(
    draft: Draft,
    sent: { readonly [K in keyof Policy]?: Policy[K] | undefined }
): Promise<{ readonly before: Policy; readonly after: Policy }> {
    return draft.change((model) => {
        const given = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined));
        const after = { ...model.policy, ...given };
        return { model: { ...model, policy: after }, result: { before: model.policy, after } };
    });
}
