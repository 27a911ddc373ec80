/** Plans of installs, changes and updates: what an app would come to, judged before anything is touched. */
import type { Actor } from '@portico/sdk';

import type { AppDocument } from '../../catalogue/app-document.ts';
import type { FormValues } from '../../catalogue/form.ts';
import { fail } from '../../errors.ts';
import type { Machine } from '../../machine.ts';
import type { Ctx } from '../../settings.ts';
import {
    composeText,
    environmentOf,
    isLoopback,
    limitedCompose,
    type PlannedPort,
    portKey,
    portsOf,
    unknownServices
} from './compose.ts';
import {
    compareExposures,
    consentFor,
    type Exposure,
    type ExposureDifference,
    exposureOf,
    isWider,
    noExposure,
    type PlannedFinding,
    type PlannedMount
} from './exposure.ts';
import { digestsOf, type PlannedImage } from './images.ts';
import { type Layout, stackOf } from './layout.ts';

/** What a plan is made from: an app of a source, and the values of its form. */
export interface PlanInput {
    readonly name: string;
    /** `source/app`. */
    readonly key: string;
    readonly keyId: string | null;
    readonly document: AppDocument;
    readonly values: FormValues;
    readonly layout: Layout;
    readonly isSigned: boolean;
    /** Digests that an unsigned app was pinned to, by service. */
    readonly pinned: Readonly<Record<string, string>>;
    /** What the revision that runs exposes; null: nothing runs yet, and consent is always needed. */
    readonly exposed: Exposure | null;
}

/** What an app would come to. */
export interface AppPlan {
    readonly compose: string;
    readonly env: string;
    readonly digests: Readonly<Record<string, string>>;
    readonly layout: Layout;
    readonly exposure: Exposure;
    readonly difference: ExposureDifference;
    /** Null: none is needed. */
    readonly consent: string | null;
    /** What `container` wants to hear for the same. */
    readonly stackConsent: string | null;
    readonly images: readonly PlannedImage[];
    readonly ports: readonly PlannedPort[];
    readonly mounts: readonly PlannedMount[];
    readonly findings: readonly PlannedFinding[];
    readonly memoryBytes: number | null;
    readonly isSigned: boolean;
    readonly warnings: readonly string[];
}

/** Makes plans, which say what an install would run, publish and expose. */
export class Planner {
    readonly #ctx: Ctx;
    readonly #machine: Machine;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /** The architecture of the engine, as container images call it. */
    async architecture(): Promise<string> {
        try {
            return (await this.#ctx.plugins.container.engine({})).arch;
        } catch {
            return this.#machine.architecture;
        }
    }

    /**
     * The plan. Ports on loopback that have no number yet get one.
     *
     * @param reserved - ports that other apps have
     * @throws INDEX_INVALID 42250, DIGEST_MISMATCH 42252, PORT_TAKEN 40954, and what `container` refuses at once
     */
    async plan(input: PlanInput, reserved: ReadonlySet<number>, actor?: Actor): Promise<AppPlan> {
        const { name, document, values, isSigned, pinned } = input;
        const call = actor === undefined ? {} : { actor };
        const stack = stackOf(name);
        const tree = limitedCompose(document, input.layout.limits);
        const [unknown] = unknownServices(tree, input.layout.publish);
        if (unknown !== undefined) {
            throw fail.INDEX_INVALID({ why: `there is no service ${unknown}` });
        }
        const { container } = this.#ctx.plugins;
        const env = environmentOf(values, { id: document.id, name }, input.layout);
        const first = await container.plan({ name: stack, compose: JSON.stringify(tree), env }, call);
        refuseFaults(first, document.id);
        const layout = await this.#reserve(first.ports as readonly PlannedPort[], input, reserved);
        const ports = portsOf(first.ports as readonly PlannedPort[], document.main, layout);
        const digests = digestsOf(first.images, document, { isSigned, pinned });
        const compose = composeText(tree, ports);
        const planned = await container.plan({ name: stack, compose, env, digests }, call);
        refuseFaults(planned, document.id);
        const exposure = exposureOf({ ...planned, ports });
        const difference = compareExposures(input.exposed ?? noExposure, exposure);
        const needsConsent = input.exposed === null || isWider(difference);
        return {
            ...{ compose, env, digests, layout, exposure, difference, ports, isSigned },
            consent: needsConsent ? consentFor([name, input.key, input.keyId], difference) : null,
            stackConsent: planned.consent,
            images: planned.images.map(({ service, image, digest }) => ({
                service,
                image,
                digest: digests[service] ?? digest
            })),
            mounts: planned.mounts,
            findings: planned.findings,
            memoryBytes: memoryOf(tree),
            warnings: [
                ...planned.warnings,
                ...(isSigned ? [] : ['This app is not signed: nothing proves who wrote it'])
            ]
        };
    }

    /** Refuses what `container` would refuse, and public ports that something else has. @throws POLICY_REFUSED 42253, PORT_TAKEN 40954 */
    async check(plan: AppPlan, held: ReadonlySet<string>): Promise<void> {
        const refused = plan.findings.filter(({ level, excepted }) => level === 'refused' && !excepted);
        if (refused.length > 0) {
            const what = exposureOf({ images: [], ports: [], mounts: [], findings: refused }).findings.join(
                ', '
            );
            throw fail.POLICY_REFUSED({ findings: refused, what });
        }
        for (const { hostIp, hostPort, protocol } of plan.ports) {
            const isNew = hostPort !== null && !held.has(`${hostIp}:${hostPort}`);
            if (isNew && protocol === 'tcp' && !(await this.#machine.isFree(hostIp || '0.0.0.0', hostPort))) {
                throw fail.PORT_TAKEN({ port: hostPort });
            }
        }
    }

    /** A port of 127.0.0.1 that nothing listens on, and that no app has. */
    async freePort(reserved: ReadonlySet<number>): Promise<number> {
        for (;;) {
            const port = await this.#machine.freePort();
            if (!reserved.has(port)) {
                return port;
            }
        }
    }

    async #reserve(
        planned: readonly PlannedPort[],
        { layout, document }: PlanInput,
        reserved: ReadonlySet<number>
    ): Promise<Layout> {
        const ports: Record<string, number> = { ...layout.ports };
        const taken = new Set([...reserved, layout.port, ...Object.values(ports)]);
        const mainKey = portKey({
            service: document.main.service,
            containerPort: document.main.port,
            protocol: 'tcp'
        });
        for (const port of planned) {
            const key = portKey(port);
            if (isLoopback(port.hostIp) && key !== mainKey && ports[key] === undefined) {
                ports[key] = await this.freePort(taken);
                taken.add(ports[key]);
            }
        }
        return { ...layout, ports };
    }
}

/** @throws INDEX_INVALID 42250 for a compose text that cannot be carried out */
function refuseFaults(
    plan: { readonly errors: readonly { readonly path: string; readonly message: string }[] },
    app: string
): void {
    const [fault] = plan.errors;
    if (fault !== undefined) {
        const why = `the compose text of ${app}: ${fault.path === '' ? '' : `${fault.path}: `}${fault.message}`;
        throw fail.INDEX_INVALID({ why, errors: plan.errors });
    }
}

/** What the limits of all services come to; null where one has none. */
function memoryOf(tree: Readonly<Record<string, unknown>>): number | null {
    const services = Object.values((tree['services'] ?? {}) as Record<string, unknown>);
    let sum = 0;
    for (const service of services) {
        const { deploy } = (service ?? {}) as { deploy?: { resources?: { limits?: { memory?: unknown } } } };
        const memory = Number(deploy?.resources?.limits?.memory);
        if (!Number.isFinite(memory)) {
            return null;
        }
        sum += memory;
    }
    return services.length === 0 ? null : sum;
}
