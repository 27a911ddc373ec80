/** Which containers of a stack are started after which others. */
import type { ListedContainer } from '../../engine/documents.ts';
import { labelOf } from '../../spec/spec.ts';
import type { StackPlan, WantedContainer } from '../planner.ts';

/** So many containers are started at once. */
const atOnce = 8;

/** What the order depends on. */
export type Ordered = Pick<StackPlan, 'wanted' | 'current'> & {
    readonly compiled: {
        readonly services: readonly Pick<StackPlan['compiled']['services'][number], 'name' | 'dependsOn'>[];
    };
};

/**
 * For each container of a plan the places of those before it that it comes after: what it depends on, whose namespace it joins, and whose
 * container of now has a port that it will have. The plan names what is depended on first.
 */
export function placesBefore({ wanted, compiled, current }: Ordered): readonly (readonly number[])[] {
    const needs = new Map(
        compiled.services.map(({ name, dependsOn }) => [
            name,
            new Set(dependsOn.map(({ service }) => service))
        ])
    );
    return wanted.map((one, place) =>
        wanted.slice(0, place).flatMap((other, earlier) => {
            const comesAfter =
                needs.get(one.service)?.has(other.service) === true ||
                joins(one, other) ||
                takesPort(one, current.get(other.spec.name)) ||
                place - earlier === atOnce;
            return comesAfter ? [earlier] : [];
        })
    );
}

/**
 * The part of a plan that a deploy of some services carries out: those, what they depend on, and what shares a namespace with any of them.
 * Containers of the other services are left as they are.
 *
 * @param services - their names; none: the whole plan
 */
export function partOf(plan: StackPlan, services: readonly string[]): StackPlan {
    if (services.length === 0) {
        return plan;
    }
    const { compiled, wanted, current } = plan;
    const part = new Set(services);
    for (let size = -1; size !== part.size;) {
        size = part.size;
        for (const { name, dependsOn } of compiled.services) {
            if (part.has(name)) {
                dependsOn.forEach((each) => part.add(each.service));
            }
        }
        for (const one of wanted) {
            for (const other of wanted) {
                if (joins(one, other) && (part.has(one.service) || part.has(other.service))) {
                    part.add(one.service).add(other.service);
                }
            }
        }
    }
    return {
        ...plan,
        wanted: wanted.filter(({ service }) => part.has(service)),
        current: new Map(
            [...current].filter(([, { Labels: labels }]) => part.has(labels?.[labelOf.service] ?? ''))
        )
    };
}

function joins(
    { spec: { networkMode, pidMode, ipcMode } }: WantedContainer,
    other: WantedContainer
): boolean {
    return [networkMode, pidMode, ipcMode].includes(`container:${other.spec.name}`);
}

function takesPort({ spec }: WantedContainer, old: ListedContainer | undefined): boolean {
    const held = new Set((old?.Ports ?? []).map(({ PublicPort }) => PublicPort));
    return spec.ports.some(({ hostPort }) => hostPort !== null && held.has(hostPort));
}
