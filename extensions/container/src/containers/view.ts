/** Containers as answers show them. */
import type { InspectedContainer, ListedContainer } from '../engine/documents.ts';
import type { Finding } from '../policy/judge.ts';
import { labelOf, type Spec } from '../spec/spec.ts';

/** The states of a container. */
export const containerStates = ['created', 'running', 'paused', 'restarting', 'exited', 'dead'] as const;
/** The state of a container. */
export type ContainerState = (typeof containerStates)[number];
/** What its check says. */
export type HealthState = 'none' | 'starting' | 'healthy' | 'unhealthy';

/** A row of the list. */
export function rowOf(listed: ListedContainer) {
    const labels = listed.Labels ?? {};
    return {
        id: listed.Id,
        name: (listed.Names[0] ?? '').replace(/^\//, ''),
        image: labels[labelOf.reference] ?? listed.Image,
        imageId: listed.ImageID,
        state: stateOf(listed.State),
        health: healthInText(listed.Status),
        createdAt: new Date(listed.Created * 1_000).toISOString(),
        ports: (listed.Ports ?? []).flatMap(({ IP, PrivatePort, PublicPort, Type }) =>
            PublicPort === undefined || PublicPort === 0
                ? []
                : [
                      {
                          containerPort: PrivatePort,
                          hostPort: PublicPort,
                          hostIp: IP === undefined || IP === '' ? '0.0.0.0' : IP,
                          protocol: Type
                      }
                  ]
        ),
        mounts: (listed.Mounts ?? []).map(({ Type, Name, Source, Destination, RW }) => ({
            type: Type,
            source: Type === 'volume' ? (Name ?? null) : Source === '' ? null : Source,
            target: Destination,
            readOnly: !RW
        })),
        networks: Object.entries(listed.NetworkSettings?.Networks ?? {}).map(([name, network]) => ({
            name,
            address: network.IPAddress === undefined || network.IPAddress === '' ? null : network.IPAddress
        })),
        stack: labels[labelOf.project] ?? null,
        service: labels[labelOf.service] ?? null,
        owner: labels[labelOf.owner] ?? null
    };
}

/** One container with everything that is shown of it alone. Values of variables are not. */
export function detailOf(container: InspectedContainer, spec: Spec, findings: readonly Finding[]) {
    const { State: state, NetworkSettings: settings, Config: config } = container;
    const labels = config.Labels ?? {};
    return {
        id: container.Id,
        name: spec.name,
        image: spec.image,
        imageId: container.Image,
        state: stateOf(state.Status),
        health: healthOf(container),
        createdAt: timeOf(container.Created) ?? new Date(0).toISOString(),
        ports: Object.entries(settings.Ports ?? {}).flatMap(([key, bindings]) => {
            const [port = '', protocol = 'tcp'] = key.split('/');
            return (bindings ?? []).map(({ HostIp, HostPort }) => ({
                containerPort: Number(port),
                hostPort: Number(HostPort),
                hostIp: HostIp === undefined || HostIp === '' ? '0.0.0.0' : HostIp,
                protocol
            }));
        }),
        mounts: spec.mounts.map(({ type, source, target, readOnly }) => ({ type, source, target, readOnly })),
        networks: Object.entries(settings.Networks ?? {}).map(([name, network]) => ({
            name,
            address: network.IPAddress === undefined || network.IPAddress === '' ? null : network.IPAddress
        })),
        stack: labels[labelOf.project] ?? null,
        service: labels[labelOf.service] ?? null,
        owner: labels[labelOf.owner] ?? null,
        env: Object.fromEntries(Object.keys(spec.env).map((name) => [name, { set: true }])),
        limits: { ...spec.limits },
        restart: spec.restart,
        restarts: container.RestartCount,
        exitCode: state.Running ? null : state.ExitCode,
        startedAt: timeOf(state.StartedAt),
        finishedAt: timeOf(state.FinishedAt),
        findings: findings.map((finding) => ({ ...finding }))
    };
}

/** Both engines have names of their own for states on the way. */
export function stateOf(state: string): ContainerState {
    const known: Readonly<Record<string, ContainerState>> = {
        configured: 'created',
        initialized: 'created',
        stopped: 'exited',
        stopping: 'running',
        removing: 'exited'
    };
    return (containerStates as readonly string[]).includes(state)
        ? (state as ContainerState)
        : (known[state] ?? 'dead');
}

/** What the check of a container says. */
export function healthOf({
    State: { Health: health, Healthcheck: podman }
}: InspectedContainer): HealthState {
    const status = health?.Status ?? podman?.Status ?? '';
    return status === 'starting' || status === 'healthy' || status === 'unhealthy' ? status : 'none';
}

function healthInText(status: string): HealthState {
    const [, found] = /\((?:health: )?(starting|healthy|unhealthy)\)/.exec(status) ?? [];
    return (found as HealthState | undefined) ?? 'none';
}

/** The engine writes the year 1 for a time that has not come. */
function timeOf(text: string): string | null {
    const time = Date.parse(text);
    return Number.isNaN(time) || time < 0 ? null : new Date(time).toISOString();
}
