/** A compose text written from containers that exist, for a stack whose file is not known. */
import { unwritable, writeServices, type WrittenService } from '../../compose/write.ts';
import type { KnownContainer } from '../../engine/inventory.ts';
import { fail } from '../../errors.ts';
import { labelOf, type Spec } from '../../spec/spec.ts';

/** The compose text of these containers. Pure. @throws COMPOSE_UNSUPPORTED 42251 for settings that no compose file can say */
export function composeOf(stack: string, containers: readonly KnownContainer[]): string {
    const keys = containers.flatMap(({ spec }) => unwritable(spec).map((what) => `${spec.name}: ${what}`));
    if (keys.length > 0) {
        throw fail.COMPOSE_UNSUPPORTED({ keys });
    }
    const byService = new Map<string, KnownContainer[]>();
    for (const each of containers) {
        const service = serviceOf(each);
        byService.set(service, [...(byService.get(service) ?? []), each]);
    }
    const siblings = new Map(
        containers.flatMap((each) => {
            const mode = `service:${serviceOf(each)}`;
            return [
                [`container:${each.container.Id}`, mode],
                [`container:${each.spec.name}`, mode]
            ] as const;
        })
    );
    return writeServices(
        [...byService].map(([name, [first, ...more]]) =>
            serviceFrom(stack, name, first, more.length + 1, siblings)
        )
    );
}

const serviceOf = ({ container, spec }: KnownContainer): string =>
    container.Config.Labels?.[labelOf.service] ?? spec.name;

function serviceFrom(
    stack: string,
    name: string,
    first: KnownContainer | undefined,
    scale: number,
    siblings: ReadonlyMap<string, string>
): WrittenService {
    const { container, spec } = first as KnownContainer;
    const resolve = (mode: string): string => siblings.get(mode) ?? mode;
    const resolved: Spec = {
        ...spec,
        networkMode: resolve(spec.networkMode),
        pidMode: resolve(spec.pidMode),
        ipcMode: resolve(spec.ipcMode)
    };
    const isOwnName = new RegExp(`^${stack}[-_]`).test(spec.name) && spec.name.includes(name);
    return {
        name,
        spec: resolved,
        scale,
        containerName: scale > 1 || isOwnName ? null : spec.name,
        dependsOn: container.Config.Labels?.[labelOf.dependsOn] ?? ''
    };
}
