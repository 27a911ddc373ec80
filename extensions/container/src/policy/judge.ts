/** The policy: what a resulting spec asks for that is refused, and what needs consent. Pure: it reads no file and asks no engine. */
import { posix } from 'node:path';

import { hashOf, type Mount, type Spec } from '../spec/spec.ts';

/** What is refused unless an exception names it. */
export type RefusedRule =
    | 'privileged'
    | 'network-host'
    | 'pid-host'
    | 'ipc-host'
    | 'uts-host'
    | 'userns-host'
    | 'namespace-join'
    | 'engine-socket'
    | 'bind-outside'
    | 'volume-device'
    | 'propagation'
    | 'device'
    | 'cap-add'
    | 'security-opt'
    | 'sysctl'
    | 'cgroup-parent'
    | 'runtime';
/** What needs consent where the revision before has it not. */
export type ConsentRule = 'public-port' | 'bind' | 'external';

/** All rules that are refused, in the order of the documentation. */
export const refusedRules: readonly RefusedRule[] = [
    'privileged',
    'network-host',
    'pid-host',
    'ipc-host',
    'uts-host',
    'userns-host',
    'namespace-join',
    'engine-socket',
    'bind-outside',
    'volume-device',
    'propagation',
    'device',
    'cap-add',
    'security-opt',
    'sysctl',
    'cgroup-parent',
    'runtime'
];

/** One thing that the policy has to say. */
export interface Finding {
    readonly rule: RefusedRule | ConsentRule;
    readonly level: 'refused' | 'consent';
    /** Of a stack; null for a single container. */
    readonly service: string | null;
    /** The value as it was written. */
    readonly detail: string;
    /** An exception names exactly this. */
    readonly excepted: boolean;
}

/** A rule that does not hold for one value. */
export interface Exception {
    readonly rule: RefusedRule;
    readonly service: string | null;
    readonly detail: string;
}

/** What the policy is judged by. */
export interface PolicyContext {
    /** Folders that binds may lie in, without links: those of the settings and the stack's own. */
    readonly roots: readonly string[];
    /** Bind sources that lead through a link, or cannot be looked at. */
    readonly links: ReadonlySet<string>;
    readonly safeCapabilities: readonly string[];
    /** Sockets of engines beside the usual ones. */
    readonly sockets: readonly string[];
    readonly exceptions: readonly Exception[];
    /** Containers of the same stack, whose namespaces may be joined: `container:…` values. */
    readonly siblings: ReadonlySet<string>;
}

const sockets = [
    '/run/docker.sock',
    '/run/podman/podman.sock',
    '/run/containerd/containerd.sock',
    '/run/docker/containerd/containerd.sock',
    '/run/crio/crio.sock'
];
const socketName = /^(docker|podman|containerd|crio|cri-dockerd|buildkitd)\.sock$/;

/** Judges one spec. Findings of the level `consent` are all that it exposes; whether they are new is for {@link compareExposure}. */
export function judge(spec: Spec, service: string | null, context: PolicyContext): readonly Finding[] {
    const found: [RefusedRule | ConsentRule, string][] = [
        ...refusedByMode(spec, context),
        ...spec.mounts.flatMap((mount) => refusedMount(mount, context)),
        ...refusedRights(spec, context),
        ...exposed(spec)
    ];
    const unique = new Map(found.map((entry) => [JSON.stringify(entry), entry]));
    return [...unique.values()].map(([rule, detail]) => {
        const level = refusedRules.includes(rule as RefusedRule) ? 'refused' : 'consent';
        return {
            rule,
            level,
            service,
            detail,
            excepted:
                level === 'refused' &&
                context.exceptions.some(
                    (each) =>
                        each.rule === rule && each.detail === detail && (each.service ?? null) === service
                )
        };
    });
}

function refusedByMode(spec: Spec, { siblings }: PolicyContext): [RefusedRule, string][] {
    const found: [RefusedRule, string][] = [];
    const modes: readonly (readonly [string, RefusedRule, readonly string[]])[] = [
        [spec.networkMode, 'network-host', ['', 'none', 'bridge', 'default']],
        [spec.pidMode, 'pid-host', ['', 'private']],
        [spec.ipcMode, 'ipc-host', ['', 'none', 'private', 'shareable']],
        [spec.utsMode, 'uts-host', ['', 'private']],
        [spec.usernsMode, 'userns-host', ['', 'private']]
    ];
    for (const [mode, rule, harmless] of modes) {
        if (harmless.includes(mode) || siblings.has(mode)) {
            continue;
        }
        // What is neither known nor harmless is refused under the stricter name: a mode of an engine that this code does not know.
        found.push([mode.includes(':') ? 'namespace-join' : rule, mode]);
    }
    for (const { name, driver } of spec.networks) {
        if (name === 'host' || driver === 'host') {
            found.push(['network-host', name]);
        }
    }
    return found;
}

function refusedMount(mount: Mount, context: PolicyContext): [RefusedRule, string][] {
    const found: [RefusedRule, string][] = [];
    if (mount.type === 'bind' && mount.source !== null) {
        const detail = mount.written ?? mount.source;
        const source = normalize(mount.source);
        if (reachesSocket(source, context)) {
            found.push(['engine-socket', detail]);
        }
        if (
            !context.roots.some((root) => isBelow(source, normalize(root))) ||
            context.links.has(mount.source)
        ) {
            found.push(['bind-outside', detail]);
        }
    }
    if (mount.propagation !== '') {
        found.push(['propagation', mount.propagation]);
    }
    if (mount.volume !== null) {
        const device = deviceOf(mount.volume.driver, mount.volume.options);
        if (device !== null) {
            found.push(['volume-device', device]);
        }
    }
    return found;
}

/**
 * What a volume's options mount, null when they mount nothing: a path of the machine or of a server. What the options of another driver than
 * `local` mean, only that driver knows, so any of them counts.
 */
export function deviceOf(driver: string, options: Readonly<Record<string, string>>): string | null {
    const given = Object.entries(options);
    if (given.length === 0) {
        return driver === 'local' || driver === '' ? null : driver;
    }
    const find = (name: string): string | undefined =>
        given.find(([option]) => option.toLowerCase() === name)?.[1];
    const [type, device, o] = [find('type'), find('device'), find('o')];
    const isLocal = driver === 'local' || driver === '';
    const isKnown = given.every(([option]) => ['type', 'device', 'o', 'size'].includes(option.toLowerCase()));
    if (isLocal && isKnown && type === 'tmpfs' && (device === undefined || device === 'tmpfs')) {
        return null;
    }
    if (isLocal && isKnown && device === undefined && !/bind|dir=/.test(o ?? '') && type === undefined) {
        return null;
    }
    return device ?? o ?? given.map(([name, value]) => `${name}=${value}`).join(',');
}

function refusedRights(spec: Spec, { safeCapabilities }: PolicyContext): [RefusedRule, string][] {
    const safe = new Set(safeCapabilities.map(capabilityOf));
    return [
        ...(spec.privileged ? ([['privileged', 'true']] as [RefusedRule, string][]) : []),
        ...spec.devices.map((device): [RefusedRule, string] => ['device', device]),
        ...spec.foreign
            .filter((name) => name === 'DeviceRequests' || name === 'DeviceCgroupRules')
            .map((name): [RefusedRule, string] => ['device', name]),
        ...spec.foreign
            .filter((name) => name === 'VolumesFrom')
            .map((name): [RefusedRule, string] => ['bind-outside', name]),
        ...spec.capAdd
            .filter((name) => capabilityOf(name) === 'ALL' || !safe.has(capabilityOf(name)))
            .map((name): [RefusedRule, string] => ['cap-add', name]),
        ...spec.securityOpt
            .filter((option) => !/^no-new-privileges([:=]true)?$/.test(option))
            .map((option): [RefusedRule, string] => ['security-opt', option]),
        ...Object.entries(spec.sysctls).map(([name, value]): [RefusedRule, string] => [
            'sysctl',
            `${name}=${value}`
        ]),
        ...(spec.cgroupParent === ''
            ? []
            : ([['cgroup-parent', spec.cgroupParent]] as [RefusedRule, string][])),
        ...(spec.runtime === '' ? [] : ([['runtime', spec.runtime]] as [RefusedRule, string][]))
    ];
}

const capabilityOf = (name: string): string => name.trim().toUpperCase().replace(/^CAP_/, '');

function exposed(spec: Spec): [ConsentRule, string][] {
    return [
        ...spec.ports
            .filter(({ hostIp }) => !isLoopback(hostIp))
            .map(({ hostIp, hostPort, containerPort, protocol }): [ConsentRule, string] => [
                'public-port',
                `${hostIp.includes(':') ? `[${hostIp}]` : hostIp}:${hostPort ?? ''}:${containerPort}/${protocol}`
            ]),
        ...spec.mounts
            .filter(({ type }) => type === 'bind')
            .map(({ source, written, target, readOnly }): [ConsentRule, string] => [
                'bind',
                `${written ?? source}:${target}${readOnly ? ':ro' : ''}`
            ]),
        ...spec.mounts
            .filter(({ volume }) => volume?.external === true)
            .map(({ source }): [ConsentRule, string] => ['external', `volume ${source}`]),
        ...spec.networks
            .filter(({ external }) => external)
            .map(({ name }): [ConsentRule, string] => ['external', `network ${name}`])
    ];
}

const isLoopback = (address: string): boolean => /^127(\.\d{1,3}){3}$/.test(address) || address === '::1';

/** An absolute path without `.`, `..` and repeated slashes, where the usual links of `/var` are followed. */
function normalize(path: string): string {
    const plain = posix.normalize(path).replace(/(.)\/$/, '$1');
    return plain.replace(/^\/var\/run(?=\/|$)/, '/run');
}

const isBelow = (path: string, root: string): boolean =>
    path === root || path.startsWith(root === '/' ? '/' : `${root}/`);

/** Whether a bind has an engine's socket in it: the socket itself, or a folder above it. */
function reachesSocket(source: string, context: PolicyContext): boolean {
    return (
        socketName.test(posix.basename(source)) ||
        [...sockets, ...context.sockets].some((socket) => isBelow(normalize(socket), source))
    );
}

/** What a change exposes that was not exposed before, and what it takes back. */
export interface Exposure {
    readonly added: readonly Finding[];
    readonly removed: readonly Finding[];
}

/** Compares what two versions expose. Exceptions count as exposure: what is excepted for the first time is shown, too. */
export function compareExposure(before: readonly Finding[], after: readonly Finding[]): Exposure {
    const keyOf = ({ rule, service, detail }: Finding): string => JSON.stringify([rule, service, detail]);
    const [was, is] = [new Set(before.map(keyOf)), new Set(after.map(keyOf))];
    return {
        added: after.filter((each) => each.level === 'consent' && !was.has(keyOf(each))),
        removed: before.filter((each) => each.level === 'consent' && !is.has(keyOf(each)))
    };
}

/** The word by which consent is given: it stands for this exposure of these specs and for no other. Null where none is needed. */
export function consentFor(subject: string, { added }: Exposure, specs: readonly Spec[]): string | null {
    return added.length === 0 ? null : hashOf({ subject, added, specs }).slice(0, 40);
}

/** The findings that stop a change. */
export const refusals = (findings: readonly Finding[]): readonly Finding[] =>
    findings.filter(({ level, excepted }) => level === 'refused' && !excepted);
