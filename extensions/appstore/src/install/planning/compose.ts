/** Makes the compose text and the variables of one installed app. Values stay out of the text: `container` fills them into parsed scalars. */
import type { AppDocument } from '../../catalogue/app-document.ts';
import type { FormValues } from '../../catalogue/form.ts';
import { isTree, readTree, type Tree } from '../../catalogue/yaml.ts';
import { fail } from '../../errors.ts';
import { type Layout, type Limits, type Published, urlOf } from './layout.ts';

/** A port as plans of `container` have it. */
export interface PlannedPort {
    readonly service: string;
    readonly containerPort: number;
    readonly protocol: string;
    readonly hostIp: string;
    readonly hostPort: number | null;
}

/** Key of a port in {@link Layout}. */
export const portKey = ({
    service,
    containerPort,
    protocol
}: Omit<PlannedPort, 'hostIp' | 'hostPort'>): string => `${service}/${containerPort}/${protocol}`;

/** Tells addresses that only this machine reaches. */
export const isLoopback = (address: string): boolean =>
    /^127(\.\d{1,3}){3}$/.test(address) || address === '::1';

/** The lines of variables. A value is one line in single quotes: nothing in it is read as anything but itself. */
export function environmentOf(
    values: FormValues,
    app: { readonly id: string; readonly name: string },
    layout: Layout
): string {
    const all = {
        ...values,
        APP_ID: app.id,
        APP_NAME: app.name,
        APP_PORT: String(layout.port),
        APP_DOMAIN: layout.domain ?? '',
        APP_URL: urlOf(layout)
    };
    return Object.entries(all)
        .map(([name, value]) => `${name}='${value}'\n`)
        .join('');
}

/** The compose file of an app with its limits; ports are as the app has them. @throws INDEX_INVALID 42250 */
export function limitedCompose(
    { compose, id, limits, main }: Pick<AppDocument, 'compose' | 'id' | 'limits' | 'main'>,
    asked: Readonly<Record<string, Limits>>
): Tree {
    const read = readTree(compose);
    if ('fault' in read) {
        throw fail.INDEX_INVALID({ why: `the compose text of ${id}: ${read.fault}` });
    }
    const { tree } = read;
    const services = isTree(tree['services']) ? tree['services'] : {};
    if (!Object.hasOwn(services, main.service)) {
        throw fail.INDEX_INVALID({ why: `the compose text of ${id} has no service ${main.service}` });
    }
    for (const [name, service] of Object.entries(services)) {
        const limit = { ...(limits?.[name] ?? {}), ...(Object.hasOwn(asked, name) ? asked[name] : {}) };
        if (isTree(service) && Object.values(limit).some((value) => value !== undefined)) {
            services[name] = withLimits(service, limit);
        }
    }
    return { ...tree, services };
}

function withLimits(service: Tree, { memoryBytes, cpus }: Limits): Tree {
    const { deploy: given, mem_limit: _memory, cpus: _cpus, ...rest } = service;
    const deploy = isTree(given) ? given : {};
    const resources = isTree(deploy['resources']) ? deploy['resources'] : {};
    const limits = isTree(resources['limits']) ? resources['limits'] : {};
    const made = {
        ...limits,
        ...(memoryBytes === undefined
            ? service['mem_limit'] === undefined
                ? {}
                : { memory: service['mem_limit'] }
            : { memory: String(memoryBytes) }),
        ...(cpus === undefined
            ? service['cpus'] === undefined
                ? {}
                : { cpus: service['cpus'] }
            : { cpus: String(cpus) })
    };
    return { ...rest, deploy: { ...deploy, resources: { ...resources, limits: made } } };
}

/**
 * The ports that an app gets: those on loopback at the numbers that were reserved for them, public ones as the app or the admin says, and the
 * main one in any case.
 */
export function portsOf(
    planned: readonly PlannedPort[],
    main: { readonly service: string; readonly port: number },
    layout: Layout
): readonly PlannedPort[] {
    const ports = new Map<string, PlannedPort>();
    const add = (port: PlannedPort): void => {
        ports.set(`${portKey(port)} ${isLoopback(port.hostIp) ? '' : port.hostIp}`, port);
    };
    const mainPort = { service: main.service, containerPort: main.port, protocol: 'tcp' };
    add({ ...mainPort, hostIp: '127.0.0.1', hostPort: layout.port });
    for (const port of planned) {
        const isMain = portKey(port) === portKey(mainPort);
        if (!isLoopback(port.hostIp)) {
            add(port);
        } else if (!isMain) {
            add({ ...port, hostIp: '127.0.0.1', hostPort: layout.ports[portKey(port)] ?? null });
        }
    }
    for (const { service, containerPort, hostIp, hostPort } of layout.publish) {
        const known = planned.find(
            (port) => port.service === service && port.containerPort === containerPort
        );
        add({ service, containerPort, hostIp, hostPort, protocol: known?.protocol ?? 'tcp' });
    }
    return [...ports.values()];
}

/** Services that `publish` names and the file has not. */
export const unknownServices = (tree: Tree, publish: readonly Published[]): readonly string[] =>
    publish
        .map(({ service }) => service)
        .filter((service) => !isTree(tree['services']) || !Object.hasOwn(tree['services'], service));

/** The same file with these ports and no others, as a text. JSON is YAML, and leaves nothing to read twice. */
export function composeText(tree: Tree, ports: readonly PlannedPort[]): string {
    const given = isTree(tree['services']) ? tree['services'] : {};
    const services = Object.fromEntries(
        Object.entries(given).map(([name, service]) => {
            if (!isTree(service)) {
                return [name, service];
            }
            const { ports: _ports, ...rest } = service;
            const own = ports.filter((port) => port.service === name);
            const written = own.map(({ containerPort, hostIp, hostPort, protocol }) => ({
                target: containerPort,
                host_ip: hostIp,
                protocol,
                ...(hostPort === null ? {} : { published: String(hostPort) })
            }));
            return [name, written.length === 0 ? rest : { ...rest, ports: written }];
        })
    );
    return JSON.stringify({ ...tree, services });
}
