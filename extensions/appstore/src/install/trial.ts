/** Deploys an app and judges it by its health: containers by their checks, and the main service by what it answers. */
import type { ContainerStack } from '@portico/plugin-container/contract';
import { type Actor, isFailure } from '@portico/sdk';

import type { AppDocument } from '../catalogue/app-document.ts';
import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { addressOf, type Layout, stackOf } from './planning/layout.ts';

/** One deployment that is tried: the compose file, the environment and the digests of its images. */
export interface Target {
    readonly name: string;
    readonly title: string;
    readonly main: AppDocument['main'];
    readonly compose: string;
    readonly env: string;
    readonly digests: Readonly<Record<string, string>>;
    readonly stackConsent: string | null;
    readonly layout: Layout;
}

/** Who it is done for, and until when. */
export interface Run {
    readonly actor: Actor | null;
    readonly signal: AbortSignal;
    log(line: string): void;
}

const pollMs = 300;
const probeSeconds = 5;

/** The options of a call of a partner. */
export const callOf = ({
    actor,
    signal
}: Pick<Run, 'actor' | 'signal'>): { actor?: Actor; signal: AbortSignal } => ({
    ...(actor === null ? {} : { actor }),
    signal
});

/** Pulls the images of an app, deploys it, and waits until it is healthy. */
export class Trial {
    readonly #ctx: Ctx;
    readonly #machine: Machine;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /**
     * Deploys, and waits until the app is healthy.
     *
     * @throws UNHEALTHY 42255, DIGEST_MISMATCH 42252
     */
    async run(target: Target, run: Run): Promise<void> {
        const begun = this.#machine.now();
        const stack = await this.deploy(target, run);
        checkDigests(stack, target.digests);
        await this.#waitForMain(target, run, begun + this.#ctx.settings.healthSeconds * 1_000);
    }

    /**
     * Brings the images, while what runs goes on.
     *
     * @returns the digests by service: those that were asked for, and of an unsigned app those that its tags have now
     * @throws DIGEST_MISMATCH 42252 for an image that has another digest, or none
     */
    async pull(
        images: readonly { readonly service: string; readonly image: string }[],
        wanted: Readonly<Record<string, string>>,
        run: Run
    ): Promise<Readonly<Record<string, string>>> {
        const digests: Record<string, string> = {};
        for (const { service, image } of images) {
            const asked = Object.hasOwn(wanted, service) ? wanted[service] : undefined;
            const name =
                asked === undefined ? image : `${image.replace(/@.*$/, '').replace(/:[^:/]*$/, '')}@${asked}`;
            run.log(`Pulling ${name}`);
            const { digest } = await this.#ctx.plugins.container.pull({ image: name }, callOf(run));
            if (digest === null || (asked !== undefined && digest !== asked)) {
                throw fail.DIGEST_MISMATCH({
                    image,
                    service,
                    why: `the registry gave ${digest ?? 'no digest'}`
                });
            }
            digests[service] = digest;
        }
        return digests;
    }

    /** Makes the stack what it should be, and does not ask the main service. @throws UNHEALTHY 42255 */
    async deploy(
        { name, title, compose, env, digests, stackConsent }: Target,
        run: Run
    ): Promise<ContainerStack> {
        try {
            return await this.#ctx.plugins.container.apply(
                {
                    name: stackOf(name),
                    description: title.slice(0, 200),
                    ...{ compose, env, digests },
                    waitSeconds: this.#ctx.settings.healthSeconds,
                    ...(stackConsent === null ? {} : { consent: stackConsent })
                },
                callOf(run)
            );
        } catch (error) {
            if (isFailure(error) && error.reason === 'DEPLOY_FAILED') {
                throw fail.UNHEALTHY({ why: error.message }, { cause: error });
            }
            throw error;
        }
    }

    async #waitForMain({ name, main, layout }: Target, { signal }: Run, deadline: number): Promise<void> {
        for (let why = 'it gave no answer'; ;) {
            signal.throwIfAborted();
            const answer = await this.#ctx.hosts
                .probe(addressOf(layout), { path: main.path, timeoutSeconds: probeSeconds, signal })
                .catch((error: unknown) => {
                    if (!isFailure(error) || error.reason !== 'PROBE_FAILED') {
                        throw error;
                    }
                    return null;
                });
            if (answer !== null && isExpected(answer.status, main.expectStatus)) {
                return;
            }
            why = answer === null ? why : `${main.path} answered ${answer.status}`;
            await this.#refuseUnhealthy(name);
            if (this.#machine.now() >= deadline) {
                throw fail.UNHEALTHY({ why });
            }
            await this.#machine.wait(pollMs, signal);
        }
    }

    /** A container that is unhealthy or has ended does not come back by waiting. @throws UNHEALTHY 42255 */
    async #refuseUnhealthy(name: string): Promise<void> {
        const stack = await this.#ctx.plugins.container.stack({ name: stackOf(name) });
        const sick = stack?.services.find(
            ({ health, state }) => health === 'unhealthy' || state === 'absent'
        );
        if (stack === null || sick !== undefined) {
            throw fail.UNHEALTHY({ why: `${sick?.name ?? name} is ${sick?.health ?? 'gone'}` });
        }
    }
}

/** 1 to 9 is a class of answers, such as 2 for 200 to 299. */
const isExpected = (status: number, wanted: number): boolean =>
    wanted < 10 ? Math.floor(status / 100) === wanted : status === wanted;

/** @throws DIGEST_MISMATCH 42252 for an image that is not what was asked for */
function checkDigests({ services }: ContainerStack, wanted: Readonly<Record<string, string>>): void {
    for (const { name, image, digest } of services) {
        const expected = Object.hasOwn(wanted, name) ? wanted[name] : undefined;
        if (digest === null || digest !== expected) {
            throw fail.DIGEST_MISMATCH({
                image,
                service: name,
                why: `it runs with ${digest ?? 'no digest'}`
            });
        }
    }
}
