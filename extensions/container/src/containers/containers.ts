/** Single containers: listed, shown, made, changed, made again, and removed. */
import { type Actor, errors, type TaskView } from '@portico/sdk';

import type { InspectedContainer, ListedContainer } from '../engine/documents.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { fail } from '../errors.ts';
import type { Images, PullPolicy, PullRun } from '../images/images.ts';
import { compareExposure, consentFor, type Exposure, type Finding } from '../policy/judge.ts';
import { consentRequired, type Policy } from '../policy/policy.ts';
import type { Ctx } from '../settings.ts';
import { labelOf, type LimitChange, mergeLimits, type Spec } from '../spec/spec.ts';
import { ownerNow } from '../stacks/owner.ts';
import type { Making } from './making.ts';
import type { Replacing } from './replacing.ts';
import { detailOf, rowOf } from './view.ts';

/** What is done with a container that exists. */
export const containerActions = ['start', 'stop', 'restart', 'pause', 'unpause', 'kill'] as const;
/** One of {@link containerActions}. */
export type ContainerAction = (typeof containerActions)[number];

/** What the containers need. */
export interface ContainersOptions {
    readonly ctx: Ctx;
    readonly engine: Engine;
    readonly inventory: Inventory;
    readonly policy: Policy;
    readonly images: Images;
    readonly making: Making;
    readonly replacing: Replacing;
}

/** How one is made. */
export interface MakeOptions {
    readonly pull: PullPolicy;
    readonly start: boolean;
    readonly consent: string | null;
}

/** What is said to a person who has to consent. */
export interface ConsentPlan {
    readonly findings: readonly Finding[];
    readonly exposure: Exposure;
    readonly consent: string | null;
}

/** The containers of the engine. */
export class Containers {
    readonly #options: ContainersOptions;

    constructor(options: ContainersOptions) {
        this.#options = options;
    }

    async list(): Promise<readonly ReturnType<typeof rowOf>[]> {
        return (await this.#options.inventory.list()).map(rowOf);
    }

    /** @throws NOT_FOUND 40400 */
    async detail(id: string): Promise<ReturnType<typeof detailOf>> {
        const { container, spec } = await this.#options.inventory.known(id);
        return this.#detailOf(container, spec);
    }

    async #detailOf(container: InspectedContainer, spec: Spec): Promise<ReturnType<typeof detailOf>> {
        const findings = await this.#options.policy.judge(
            [{ service: serviceOf(container), spec }],
            subjectOf(container),
            await this.#siblings(container)
        );
        return detailOf(container, spec, findings);
    }

    /** Does an action; what is so already succeeds. @throws ENGINE_REFUSED 42254 */
    async act(
        id: string,
        action: ContainerAction,
        { timeoutSeconds, signal }: { readonly timeoutSeconds: number; readonly signal?: string | undefined }
    ): Promise<ReturnType<typeof detailOf>> {
        const { engine, inventory } = this.#options;
        const container = await inventory.container(id);
        const { Running: running, Paused: paused } = container.State;
        const isSo = {
            start: running && !paused,
            stop: !running && !container.State.Restarting,
            restart: false,
            pause: paused,
            unpause: running && !paused,
            kill: !running
        }[action];
        if (!isSo && action === 'pause' && !running) {
            throw errors.inUse(id, 'The container does not run: start it first');
        }
        if (!isSo) {
            await engine.call('POST', `/containers/${container.Id}/${action}`, {
                query:
                    action === 'kill'
                        ? { signal }
                        : action === 'stop' || action === 'restart'
                          ? { t: timeoutSeconds }
                          : {},
                patienceMs: (timeoutSeconds + 60) * 1_000
            });
        }
        return this.detail(container.Id);
    }

    /** Changes what can be changed in place. @throws STACK_OWNED 40950, ENGINE_LACKS 50150 */
    async update(
        id: string,
        change: {
            readonly name?: string | undefined;
            readonly restart?: Spec['restart'] | undefined;
            readonly limits?: LimitChange | undefined;
        }
    ): Promise<ReturnType<typeof detailOf>> {
        const { engine, inventory, making } = this.#options;
        const { container, spec } = await inventory.known(id);
        await this.mustBeFree(container);
        if (change.restart !== undefined || change.limits !== undefined) {
            const { kind } = await engine.info();
            if (kind === 'podman') {
                throw fail.ENGINE_LACKS({ what: 'Podman changes no limits in place' });
            }
            const { memoryBytes, cpus, pids } = mergeLimits(spec.limits, change.limits ?? {});
            await engine.call('POST', `/containers/${container.Id}/update`, {
                body: {
                    ...(change.restart === undefined ? {} : { RestartPolicy: { Name: change.restart } }),
                    ...(change.limits === undefined
                        ? {}
                        : {
                              Memory: memoryBytes ?? 0,
                              MemorySwap: memoryBytes === null ? -1 : memoryBytes * 2,
                              NanoCpus: Math.round((cpus ?? 0) * 1_000_000_000),
                              PidsLimit: pids ?? -1
                          })
                },
                patienceMs: 30_000
            });
        }
        if (change.name !== undefined && change.name !== spec.name) {
            await making.rename(container.Id, change.name);
        }
        return this.detail(container.Id);
    }

    /** @throws IN_USE 40901 for one that runs, unless `force`; STACK_OWNED 40950 */
    async remove(
        id: string,
        { force, volumes }: { readonly force: boolean; readonly volumes: boolean }
    ): Promise<void> {
        const { inventory, making } = this.#options;
        const container = await inventory.container(id);
        await this.mustBeFree(container);
        if (container.State.Running && !force) {
            throw errors.inUse(
                container.Name.replace(/^\//, ''),
                'The container runs: stop it first, or send force=true'
            );
        }
        await making.remove(container.Id, volumes);
    }

    /** Begins a task that makes a container. What is known to fail is said at once. */
    async begin(spec: Spec, options: MakeOptions, actor: Actor): Promise<TaskView> {
        const { ctx, inventory, images } = this.#options;
        if ((await inventory.findContainer(spec.name)) !== null) {
            throw errors.conflict('name');
        }
        await images.mustCome(spec.image, options.pull);
        await this.#mustHaveNetworks(spec);
        await this.#mustConsent(spec, [], options.consent);
        return ctx.task(
            {
                kind: 'create',
                title: `Make the container ${spec.name}`,
                access: 'write',
                resource: spec.name,
                key: `container:${spec.name}`,
                actor
            },
            async (run) => {
                await images.ensure(spec.image, options.pull, run);
                // A volume, a link or an exception may have changed while the image came.
                await this.#mustConsent(spec, [], options.consent);
                return this.#make(spec, options.start, run);
            }
        );
    }

    /** Begins a task that makes a container again, with another spec. Its volumes stay; the old one is back if the new one does not run. */
    async recreate(
        id: string,
        change: (spec: Spec) => Spec,
        { consent, actor }: { readonly consent: string | null; readonly actor: Actor }
    ): Promise<TaskView> {
        const { before, spec, run } = await this.#prepare(id, change, consent);
        return this.#options.ctx.task(
            {
                kind: 'recreate',
                title: `Make the container ${spec.name} again`,
                access: 'write',
                resource: spec.name,
                key: `container:${before.name}`,
                actor
            },
            run
        );
    }

    /** The same within a call, where nothing new is exposed. @throws SPEC_CONSENT_REQUIRED 40951 */
    async recreateNow(id: string, change: (spec: Spec) => Spec, run: PullRun): Promise<void> {
        const prepared = await this.#prepare(id, change, null);
        await prepared.run(run);
    }

    /** @throws STACK_OWNED 40950, IN_USE 40901 for a container of a stack, ENGINE_LACKS 50150, POLICY_REFUSED 42253, SPEC_CONSENT_REQUIRED 40951 */
    async #prepare(
        id: string,
        change: (spec: Spec) => Spec,
        consent: string | null
    ): Promise<{
        readonly before: Spec;
        readonly spec: Spec;
        readonly run: (run: PullRun) => Promise<unknown>;
    }> {
        const { inventory, images } = this.#options;
        const { container, spec: before } = await inventory.known(id);
        await this.mustBeSingle(container);
        const lacking = before.foreign;
        if (lacking.length > 0) {
            throw fail.ENGINE_LACKS({
                what: `the container has ${lacking.join(', ')}, which cannot be carried over`
            });
        }
        const spec = change(before);
        await this.#mustHaveNetworks(spec);
        const was = await this.#options.policy.judge([{ service: null, spec: before }], subjectOf(container));
        await this.#mustConsent(spec, was, consent);
        return {
            before,
            spec,
            run: async (run) => {
                await images.ensure(spec.image, 'missing', run);
                await this.#mustConsent(spec, was, consent);
                return this.detail(await this.#options.replacing.replace(container, spec, run));
            }
        };
    }

    /** @throws STACK_OWNED 40950 for what another plugin made */
    async mustBeFree({ Config: { Labels: labels } }: InspectedContainer): Promise<void> {
        const owner = await ownerNow(this.#options.ctx, labels?.[labelOf.owner]);
        if (owner !== null) {
            throw fail.STACK_OWNED({ owner });
        }
    }

    /** @throws STACK_OWNED 40950; IN_USE 40901 for a container of a stack, which is changed by its compose file */
    async mustBeSingle(container: InspectedContainer): Promise<void> {
        await this.mustBeFree(container);
        if (serviceOf(container) !== null) {
            const stack = container.Config.Labels?.[labelOf.project];
            throw errors.inUse(stack, `The container belongs to the stack ${stack}: change the stack`);
        }
    }

    async #make(spec: Spec, start: boolean, run: PullRun): Promise<unknown> {
        const { making } = this.#options;
        run.progress(null, `Making ${spec.name}`);
        const id = await making.create(spec);
        if (start) {
            await making.start(id).catch(async (error: unknown) => {
                await making.remove(id).catch(() => undefined);
                throw error;
            });
        }
        return this.detail(id);
    }

    /** @throws POLICY_REFUSED 42253, SPEC_CONSENT_REQUIRED 40951 */
    async #mustConsent(spec: Spec, was: readonly Finding[], consent: string | null): Promise<void> {
        const { policy } = this.#options;
        const judged = await policy.resolve([{ service: null, spec }], null);
        const findings = await policy.judge(judged, `container:${spec.name}`);
        policy.refuse(findings);
        const exposure = compareExposure(was, findings);
        const needed = consentFor(
            `container:${spec.name}`,
            exposure,
            judged.map((each) => each.spec)
        );
        if (needed !== null && needed !== consent) {
            const plan: ConsentPlan = { findings, exposure, consent: needed };
            throw consentRequired(plan);
        }
    }

    /** @throws VALIDATION_FAILED 40001 for a network that is not there */
    async #mustHaveNetworks({ networks }: Spec): Promise<void> {
        const there = networks.length === 0 ? null : await this.#options.inventory.networks();
        const at = networks.findIndex(({ name }) => there?.has(name) === false && name !== 'host');
        if (at >= 0) {
            const message = `There is no network ${networks[at]?.name}`;
            throw errors.invalid([{ path: `networks.${at}.name`, message }]);
        }
    }

    /** Containers of the same stack, whose namespaces may be joined. */
    async #siblings(container: InspectedContainer): Promise<ReadonlySet<string>> {
        const stack = container.Config.Labels?.[labelOf.project];
        const modes = [
            container.HostConfig.NetworkMode,
            container.HostConfig.PidMode,
            container.HostConfig.IpcMode
        ];
        if (stack === undefined || !modes.some((mode) => mode?.startsWith('container:') === true)) {
            return new Set();
        }
        const listed: readonly ListedContainer[] = await this.#options.inventory.list(stack);
        return new Set(
            listed.flatMap(({ Id, Names }) => [
                `container:${Id}`,
                ...Names.map((name) => `container:${name.slice(1)}`)
            ])
        );
    }
}

/** The name of the subject of exceptions. */
export function subjectOf({ Config: { Labels: labels }, Name: name }: InspectedContainer): string {
    const stack = labels?.[labelOf.project];
    return stack === undefined ? `container:${name.replace(/^\//, '')}` : `stack:${stack}`;
}

/** The service of a container of a stack; null for a single one. */
export function serviceOf({ Config: { Labels: labels } }: InspectedContainer): string | null {
    return labels?.[labelOf.project] === undefined ? null : (labels[labelOf.service] ?? null);
}
