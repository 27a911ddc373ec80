/** One deploy: from what runs to what a plan says, or back again, whole. */
import type { DeclaredNetwork } from '../../compose/parts/service.ts';
import type { Making, WaitOptions } from '../../containers/making.ts';
import type { ListedContainer } from '../../engine/documents.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Inventory } from '../../engine/inventory.ts';
import { labelOf, type Spec } from '../../spec/spec.ts';
import { nameOf, reasonsOf, type StackPlan, type WantedContainer } from '../planner.ts';
import type { WorkRun } from '../work.ts';
import { placesBefore } from './order.ts';

/** What a deploy works with. */
export interface DeployParts {
    readonly engine: Engine;
    readonly inventory: Inventory;
    readonly making: Making;
}

/** How a stack is deployed. */
export interface DeployOptions {
    readonly stack: string;
    readonly start: boolean;
    readonly waitSeconds: number;
    readonly onFailure: 'rollback' | 'keep';
    readonly run: WorkRun;
}

interface Aside {
    readonly id: string;
    readonly name: string;
    readonly wasRunning: boolean;
}

/** A container that is to run. */
interface Step {
    readonly id: string;
    readonly each: WantedContainer;
    /** What it takes the place of. */
    readonly old: ListedContainer | null;
    readonly runs: boolean;
}

/** What a container that was set aside is named after its own name. */
const asideMark = '-before-';

/** Carries a plan out, and back when it fails. An object is good for one deploy. */
export class Deploy {
    readonly #parts: DeployParts;
    readonly #plan: StackPlan;
    readonly #options: DeployOptions;
    readonly #made = new Map<string, string>();
    readonly #aside: Aside[] = [];
    readonly #started = new Map<string, string>();
    readonly #networks: string[] = [];
    readonly #volumes: string[] = [];

    constructor(parts: DeployParts, plan: StackPlan, options: DeployOptions) {
        this.#parts = parts;
        this.#plan = plan;
        this.#options = options;
    }

    /** @throws DEPLOY_FAILED 42252 and what the engine says; with `rollback` what ran before runs again */
    async run(): Promise<void> {
        const { run, onFailure } = this.#options;
        try {
            await this.#restoreCut();
            await this.#makeNetworks();
            await this.#makeVolumes();
            await this.#setAsideRemoved();
            await this.#startContainers(await this.#makeContainers());
            await this.#waitForAll();
        } catch (error) {
            if (onFailure === 'rollback' || run.signal.aborted) {
                run.log('It failed: what ran before comes back');
                await this.#goBack();
            } else {
                await this.#forgetAside();
            }
            throw error;
        }
        await this.#forgetAside();
    }

    /** Containers that a deploy which was cut left aside get their names back, where nothing took them. */
    async #restoreCut(): Promise<void> {
        const { making } = this.#parts;
        const current = this.#plan.current as Map<string, ListedContainer>;
        for (const [name, container] of [...current]) {
            const [, original] = new RegExp(`^(.+)${asideMark}[a-z0-9]+$`).exec(name) ?? [];
            if (original === undefined) {
                continue;
            }
            const taken = current.get(original);
            const wanted = this.#plan.wanted.find(({ spec }) => spec.name === original);
            const fits = wanted !== undefined && reasonsOf(wanted, this.#plan.images, container).length === 0;
            if (taken !== undefined && fits) {
                await making.remove(taken.Id);
            }
            if (taken === undefined || fits) {
                await making.rename(container.Id, original);
                current.set(original, { ...container, Names: [`/${original}`] });
            } else {
                await making.remove(container.Id);
            }
            current.delete(name);
        }
    }

    async #makeNetworks(): Promise<void> {
        const { engine, inventory } = this.#parts;
        const there = await inventory.networks();
        for (const network of this.#plan.compiled.networks) {
            if (!there.has(network.name) && !network.external) {
                await engine.call('POST', '/networks/create', { body: this.#networkBody(network) });
                this.#networks.push(network.name);
            }
        }
    }

    #networkBody({ key, name, internal, ipv6, subnet, gateway, labels }: DeclaredNetwork): object {
        return {
            Name: name,
            CheckDuplicate: true,
            Driver: 'bridge',
            Internal: internal,
            EnableIPv6: ipv6,
            Labels: { ...labels, [labelOf.project]: this.#options.stack, [labelOf.network]: key },
            ...(subnet === null
                ? {}
                : {
                      IPAM: {
                          Config: [{ Subnet: subnet, ...(gateway === null ? {} : { Gateway: gateway }) }]
                      }
                  })
        };
    }

    async #makeVolumes(): Promise<void> {
        const { engine, inventory } = this.#parts;
        const there = await inventory.volumes();
        for (const { key, name, external, driver, options, labels } of this.#plan.compiled.volumes) {
            if (!there.has(name) && !external) {
                await engine.call('POST', '/volumes/create', {
                    body: {
                        Name: name,
                        Driver: driver,
                        DriverOpts: options,
                        Labels: { ...labels, [labelOf.project]: this.#options.stack, [labelOf.volume]: key }
                    }
                });
                this.#volumes.push(name);
            }
        }
    }

    /** What the file no longer has is stopped first: it may hold a port. */
    async #setAsideRemoved(): Promise<void> {
        const wanted = new Set(this.#plan.wanted.map(({ spec }) => spec.name));
        for (const [name, container] of this.#plan.current) {
            if (!wanted.has(name)) {
                await this.#setAside(container);
                await this.#parts.making.stop(container.Id);
            }
        }
    }

    /** All are made before the first of now is stopped: what the engine refuses interrupts nothing. */
    async #makeContainers(): Promise<readonly Step[]> {
        const { run } = this.#options;
        const { wanted, current, images } = this.#plan;
        const steps: Step[] = [];
        for (const [index, each] of wanted.entries()) {
            run.signal.throwIfAborted();
            run.progress(index / (2 * wanted.length), each.spec.name);
            const old = current.get(each.spec.name);
            const stays =
                old !== undefined && reasonsOf(each, images, old).length === 0 && !this.#joinsNew(each.spec);
            steps.push(
                stays
                    ? { id: old.Id, each, old: null, runs: old.State === 'running' }
                    : { id: await this.#make(each, old), each, old: old ?? null, runs: false }
            );
        }
        return steps;
    }

    /** Those that wait for no other are started at the same time. The first failure ends what is under way, and is thrown. */
    async #startContainers(steps: readonly Step[]): Promise<void> {
        const { run } = this.#options;
        const failure = new AbortController();
        const signal = AbortSignal.any([run.signal, failure.signal]);
        const started: Promise<void>[] = [];
        let count = 0;
        for (const [place, before] of placesBefore(this.#plan).entries()) {
            const step = steps[place] as Step;
            const work = Promise.all(before.map((earlier) => started[earlier] as Promise<void>)).then(
                async () => {
                    await this.#take(step, signal);
                    count += 1;
                    run.progress((1 + count / steps.length) / 2, step.each.spec.name);
                }
            );
            work.catch((error: unknown) => failure.abort(error));
            started.push(work);
        }
        await Promise.allSettled(started);
        failure.signal.throwIfAborted();
    }

    /** A namespace that was joined is gone with its container. */
    #joinsNew({ networkMode, pidMode, ipcMode }: Spec): boolean {
        return [networkMode, pidMode, ipcMode].some((mode) =>
            this.#made.has(mode.replace(/^container:/, ''))
        );
    }

    /** Makes a container beside the one of now, which gets another name and runs on. */
    async #make({ spec, hash, service }: WantedContainer, old: ListedContainer | undefined): Promise<string> {
        const { making, inventory } = this.#parts;
        const imageId = this.#plan.images.get(service)?.imageId ?? undefined;
        const tagged = await inventory.image(spec.image);
        if (old !== undefined) {
            await this.#setAside(old);
        }
        const labels = {
            ...spec.labels,
            [labelOf.hash]: hash,
            ...(imageId === undefined ? {} : { [labelOf.image]: imageId })
        };
        const id = await making.create({ ...spec, labels }, tagged?.Id === imageId ? undefined : imageId);
        this.#made.set(spec.name, id);
        return id;
    }

    /** Stops the container of before, and starts the new one, once what it depends on does as it should. */
    async #take({ id, each, old, runs }: Step, signal: AbortSignal): Promise<void> {
        const { making } = this.#parts;
        const { start } = this.#options;
        signal.throwIfAborted();
        if (start) {
            await this.#waitForNeeded(each.service, signal);
        }
        if (old !== null) {
            await making.stop(old.Id);
        }
        if (start && !runs) {
            await (this.#aside.length > 0 ? making.startInPlace(id) : making.start(id));
            this.#started.set(each.spec.name, id);
        }
    }

    async #setAside(container: ListedContainer): Promise<void> {
        const name = nameOf(container);
        this.#aside.push({ id: container.Id, name, wasRunning: container.State === 'running' });
        await this.#parts.making.rename(container.Id, `${name}${asideMark}${Date.now().toString(36)}`);
    }

    async #waitForNeeded(service: string, signal: AbortSignal): Promise<void> {
        const { compiled, wanted } = this.#plan;
        const found = compiled.services.find(({ name }) => name === service);
        for (const { service: needed, condition } of found?.dependsOn ?? []) {
            const until = conditionOutcome[condition];
            for (const { spec } of wanted.filter((each) => each.service === needed)) {
                if (until !== 'started') {
                    await this.#waitFor(spec.name, { service: needed, until, signal });
                }
            }
        }
    }

    async #waitFor(name: string, options: Omit<WaitOptions, 'deadline'>): Promise<void> {
        const id = this.#started.get(name) ?? this.#plan.current.get(name)?.Id;
        if (id !== undefined) {
            const deadline = this.#begun + this.#options.waitSeconds * 1_000;
            await this.#parts.making.waitFor(id, { ...options, deadline });
        }
    }

    readonly #begun = Date.now();

    /** All that was started runs, and is healthy where it has a check. What others waited for to complete may have ended. */
    async #waitForAll(): Promise<void> {
        const completes = new Set(
            this.#plan.compiled.services.flatMap(({ dependsOn }) =>
                dependsOn.flatMap(({ service, condition }) =>
                    condition === 'service_completed_successfully' ? [service] : []
                )
            )
        );
        await Promise.all(
            this.#plan.wanted
                .filter(({ spec }) => this.#started.has(spec.name))
                .map(({ spec, service }) =>
                    this.#waitFor(spec.name, {
                        service,
                        until: completes.has(service) ? 'completed' : 'running',
                        signal: this.#options.run.signal
                    })
                )
        );
    }

    async #forgetAside(): Promise<void> {
        for (const { id } of this.#aside) {
            await this.#parts.making.remove(id);
        }
    }

    /** Each step is tried, also when one before it failed: what can come back does. */
    async #goBack(): Promise<void> {
        const { engine, making } = this.#parts;
        const { run } = this.#options;
        const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
            await work().catch((error: unknown) => run.log(`${what}: ${(error as Error).message}`));
        };
        for (const [name, id] of [...this.#made].reverse()) {
            await attempt(`Removing ${name}`, () => making.remove(id));
        }
        for (const { id, name, wasRunning } of this.#aside) {
            await attempt(`Naming ${name}`, () => making.rename(id, name));
            if (wasRunning) {
                await attempt(`Starting ${name}`, () => making.startInPlace(id));
            }
        }
        for (const name of this.#networks) {
            await attempt(`Removing ${name}`, () =>
                engine.call('DELETE', `/networks/${encodeURIComponent(name)}`)
            );
        }
        for (const name of this.#volumes) {
            await attempt(`Removing ${name}`, () =>
                engine.call('DELETE', `/volumes/${encodeURIComponent(name)}`)
            );
        }
    }
}

const conditionOutcome = {
    service_started: 'started',
    service_healthy: 'healthy',
    service_completed_successfully: 'completed'
} as const;
