/** Makes containers of resulting specs, and removes them. The only place that calls the engine's create. */
import { setTimeout as wait } from 'node:timers/promises';

import { type FailureError, isFailure } from '@portico/sdk';

import type { InspectedContainer } from '../engine/documents.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { createBody } from '../spec/create-body.ts';
import { isReservedLabel, type Spec, type SpecFile } from '../spec/spec.ts';
import { tarOf } from '../spec/tar.ts';
import { healthOf } from './view.ts';

const slowMs = 120_000;
/** A container that runs so long is said to run. */
const settledMs = 1_000;
const pollMs = 150;
const defaultCheckMs = 30_000;
const tidyMs = 20_000;
/** States of a container that does not run any more. Podman has others between two runs of one that is started again. */
const overStates = ['exited', 'stopped', 'dead'];

/** How a container that was started does. */
export type Outcome = 'started' | 'running' | 'healthy' | 'completed';

/** What a wait is for. */
export interface WaitOptions {
    readonly until: Outcome;
    /** Milliseconds since 1970. */
    readonly deadline: number;
    readonly signal: AbortSignal;
    /** Names it in errors. */
    readonly service: string;
}

/** Makes, starts and removes containers. */
export class Making {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;

    constructor(ctx: Ctx, engine: Engine, inventory: Inventory) {
        this.#ctx = ctx;
        this.#engine = engine;
        this.#inventory = inventory;
    }

    /** Makes a container with its files and networks, and does not start it. Returns its id. */
    async create(spec: Spec, imageId?: string): Promise<string> {
        const engine = await this.#engine.info();
        await this.#makeFolders(spec);
        const labels = { ...(await this.#foreignLabels(imageId ?? spec.image)), ...spec.labels };
        const { logBytes } = this.#ctx.settings;
        const body = createBody({ ...spec, labels }, { engine, logBytes, imageId });
        const { Id: id } = await this.#engine.call<{ Id: string }>('POST', '/containers/create', {
            query: { name: spec.name },
            body,
            patienceMs: slowMs
        });
        try {
            for (const { name, aliases } of spec.networkMode === '' ? spec.networks.slice(1) : []) {
                await this.#engine.call('POST', `/networks/${encodeURIComponent(name)}/connect`, {
                    body: { Container: id, EndpointConfig: { Aliases: aliases } }
                });
            }
            await this.#writeFiles(id, spec.files);
            return id;
        } catch (error) {
            await this.remove(id).catch(() => undefined);
            throw error;
        }
    }

    /** An image may have labels that say what belongs to which stack or plugin. No container gets those of its image: they are empty, which counts as none. */
    async #foreignLabels(image: string): Promise<Readonly<Record<string, string>>> {
        const found = await this.#inventory.image(image);
        const reserved = Object.keys(found?.Config?.Labels ?? {}).filter(isReservedLabel);
        return Object.fromEntries(reserved.map((name) => [name, '']));
    }

    /** Starts a container. */
    async start(id: string): Promise<void> {
        await this.#engine.call('POST', `/containers/${id}/start`, { patienceMs: slowMs });
    }

    /** Starts a container on ports that another one, or itself, had until now: Podman frees them a while after the end. */
    startInPlace(id: string): Promise<void> {
        return this.#untilTidied(
            () => this.start(id),
            (data) => data?.['port'] !== undefined
        );
    }

    /** Podman tidies up after containers in programs of its own, and refuses some calls until they are through: asks again for a while. */
    async #untilTidied(
        call: () => Promise<unknown>,
        passes: (data: FailureError['data']) => boolean = () => true
    ): Promise<void> {
        const { kind } = await this.#engine.info();
        const deadline = Date.now() + (kind === 'podman' ? tidyMs : 0);
        for (;;) {
            try {
                await call();
                return;
            } catch (error) {
                const isPassing = isFailure(error) && error.code === 42254 && passes(error.data);
                if (!isPassing || Date.now() >= deadline) {
                    throw error;
                }
                await wait(pollMs);
            }
        }
    }

    /** Stops a container by its own stop time. */
    async stop(id: string, timeoutSeconds?: number): Promise<void> {
        await this.#engine.call('POST', `/containers/${id}/stop`, {
            query: { t: timeoutSeconds },
            patienceMs: ((timeoutSeconds ?? 300) + 30) * 1_000
        });
    }

    /** Removes a container, running or not. `volumes`: those without a name, too. */
    async remove(id: string, volumes = false): Promise<void> {
        const query = { force: true, v: volumes };
        await this.#untilTidied(() =>
            this.#engine.call('DELETE', `/containers/${id}`, { query, patienceMs: slowMs })
        );
    }

    async rename(id: string, name: string): Promise<void> {
        await this.#engine.call('POST', `/containers/${id}/rename`, { query: { name } });
    }

    /** Waits until a container does as it should. @throws DEPLOY_FAILED 42252 as soon as it cannot any more */
    async waitFor(id: string, { until, deadline, signal, service }: WaitOptions): Promise<void> {
        let runsSince = 0;
        let checkedAt = Date.now();
        for (;;) {
            signal.throwIfAborted();
            const container = await this.#inventory.container(id);
            const { State: state } = container;
            const health = healthOf(container);
            const isOver = overStates.includes(state.Status);
            if (until === 'completed' && isOver && state.ExitCode === 0) {
                return;
            }
            if (isOver || (state.Restarting && until !== 'completed') || container.RestartCount > 0) {
                const ended = isOver || state.Restarting ? `ended with ${state.ExitCode}` : 'ended by itself';
                const why = state.OOMKilled === true ? 'out of memory' : ended;
                throw fail.DEPLOY_FAILED({ service, why: state.Error ? `${why}: ${state.Error}` : why });
            }
            if (health === 'unhealthy') {
                throw fail.DEPLOY_FAILED({ service, why: 'its check says unhealthy' });
            }
            runsSince = state.Running ? (runsSince === 0 ? Date.now() : runsSince) : 0;
            const isSettled = runsSince > 0 && Date.now() - runsSince >= settledMs;
            if (until !== 'completed' && isSettled && (health === 'healthy' || health === 'none')) {
                return;
            }
            if (health === 'starting' && Date.now() - checkedAt >= checkEveryMs(container)) {
                await this.#checkHealth(container.Id, signal);
                checkedAt = Date.now();
                continue;
            }
            if (Date.now() > deadline) {
                const why = health === 'starting' ? 'not healthy in time' : 'not running in time';
                throw fail.DEPLOY_FAILED({ service, why });
            }
            await wait(pollMs, undefined, { signal });
        }
    }

    /** Podman leaves checks to timers of systemd, which a machine may not run: so a wait makes them. */
    async #checkHealth(id: string, signal: AbortSignal): Promise<void> {
        const { kind } = await this.#engine.info();
        if (kind === 'podman') {
            await this.#engine
                .call('GET', `/libpod/containers/${id}/healthcheck`, { signal, patienceMs: slowMs })
                .catch((error: unknown) => {
                    // The container ended meanwhile: the next look says so.
                    if (!isFailure(error) || error.code === 50350) {
                        throw error;
                    }
                });
        }
    }

    async #writeFiles(id: string, files: readonly SpecFile[]): Promise<void> {
        if (files.length > 0) {
            await this.#engine.call('PUT', `/containers/${id}/archive`, {
                query: { path: '/' },
                body: (async function* bytes() {
                    yield tarOf(files);
                })(),
                patienceMs: slowMs
            });
        }
    }

    /** Folders of binds below the folder of stacks are made, as Compose does; others must be there. */
    async #makeFolders({ mounts }: Spec): Promise<void> {
        const { stackFolder } = this.#ctx.settings;
        for (const { type, source } of mounts) {
            if (type === 'bind' && source !== null && source.startsWith(`${stackFolder}/`)) {
                const files = this.#ctx.files('/');
                const path = source.slice(1);
                const isThere = await files.stat(path).then(
                    () => true,
                    () => false
                );
                if (!isThere) {
                    await files.createFolder(path, { parents: true, mode: 0o755 });
                }
            }
        }
    }
}

/** How often the check of a container is made. */
function checkEveryMs({ Config: { Healthcheck: check } }: InspectedContainer): number {
    const { Interval: interval = 0 } = check ?? {};
    return interval > 0 ? interval / 1_000_000 : defaultCheckMs;
}
