/** Stacks as answers show them. */
import { rowOf } from '../containers/view.ts';
import type { ListedContainer } from '../engine/documents.ts';
import type { StackRow } from '../entities.ts';
import { labelOf } from '../spec/spec.ts';
import type { Revision } from './revisions.ts';
import type { AutoUpdate } from './source.ts';

type ContainerRow = ReturnType<typeof rowOf>;
/** The state of a stack. */
export type StackState = 'running' | 'degraded' | 'starting' | 'stopped' | 'absent';
/** A stack as answers show it. */
export type StackView = ReturnType<typeof stackView>;

/** A stack. `listed`: its containers. */
export function stackView(
    name: string,
    row: StackRow | null,
    revision: Omit<Revision, 'compose' | 'env'> | null,
    listed: readonly ListedContainer[]
) {
    const containers = listed.map((each) => ({
        ...rowOf(each),
        imageLabel: each.Labels?.[labelOf.image] ?? each.ImageID
    }));
    const declared = Object.keys(revision?.images ?? {});
    const names = [...new Set([...declared, ...containers.map(({ service }) => service ?? '')])].sort();
    const services = names.map((service) => {
        const own = containers.filter((each) => (each.service ?? '') === service);
        const image = revision?.images[service];
        return {
            name: service,
            image: image?.image ?? own[0]?.image ?? '',
            digest: image?.digest ?? null,
            state: stateOf(own),
            health: own.map(({ health }) => health).find((health) => health !== 'none') ?? 'none',
            containers: own.map((each) => each.name),
            ports: own.flatMap(({ ports }) => ports)
        };
    });
    return {
        name,
        description: row?.description ?? '',
        owner: row === null ? (containers[0]?.owner ?? null) : row.owner,
        managed: row !== null,
        state: worst(services.map(({ state }) => state)),
        revision: row === null || row.revision === 0 ? null : row.revision,
        version: row?.version ?? 0,
        services,
        autoUpdate: {
            mode: (row?.autoUpdate ?? 'off') as AutoUpdate['mode'],
            everyHours: row?.autoHours ?? 24
        },
        hook: row !== null && row.hookKey !== null,
        findings: (revision?.exposed ?? []).map((finding) => ({ ...finding })),
        createdAt: row === null ? null : new Date(row.createdAt).toISOString(),
        updatedAt: row === null ? null : new Date(row.updatedAt).toISOString()
    };
}

function stateOf(containers: readonly ContainerRow[]): StackState {
    if (containers.length === 0) {
        return 'absent';
    }
    const running = containers.filter(({ state }) => state === 'running');
    if (running.length === 0) {
        return 'stopped';
    }
    if (running.length < containers.length || running.some(({ health }) => health === 'unhealthy')) {
        return 'degraded';
    }
    return running.some(({ health }) => health === 'starting') ? 'starting' : 'running';
}

/** All alike: that; else what a person should look at first. */
function worst(states: readonly StackState[]): StackState {
    const [first = 'absent'] = states;
    if (states.every((state) => state === first)) {
        return first;
    }
    const isUp = states.every((state) => state === 'running' || state === 'starting');
    return isUp ? 'starting' : 'degraded';
}
