/** Which containers of a stack are started after which others. */
import type { ListedContainer } from '../../engine/documents.ts';
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
