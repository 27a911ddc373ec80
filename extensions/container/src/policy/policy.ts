/** Brings together what the policy judges by: settings, exceptions, and the machine's own folders. */
import { posix } from 'node:path';

import { type FailureError, isFailure } from '@portico/sdk';

import type { EngineInfo } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { labelOf, type Mount, type NetworkUse, type Spec } from '../spec/spec.ts';
import type { Exceptions } from './exceptions.ts';
import { type Exposure, type Finding, judge, type PolicyContext, refusals } from './judge.ts';

/** What is judged together. */
export interface JudgedSpec {
    readonly service: string | null;
    readonly spec: Spec;
}

const textOf = ({ rule, service, detail }: Finding): string =>
    `${service === null ? '' : `${service}: `}${rule} ${detail}`;

/** Makes the error for a specification that the policy refuses. @returns POLICY_REFUSED 42253 */
export const policyRefused = (findings: readonly Finding[]): FailureError =>
    fail.POLICY_REFUSED({ findings, what: findings.map(textOf).join(', ') });

/** Makes the error for a plan that exposes more than was agreed to. @returns SPEC_CONSENT_REQUIRED 40951 */
export const consentRequired = (plan: { readonly exposure: Exposure }): FailureError =>
    fail.SPEC_CONSENT_REQUIRED({ plan, what: plan.exposure.added.map(textOf).join(', ') });

/** Judges specs as they would reach the engine now. */
export class Policy {
    readonly #ctx: Ctx;
    readonly #inventory: Inventory;
    readonly #exceptions: Exceptions;
    readonly #engine: { info(): Promise<EngineInfo> };

    constructor(
        ctx: Ctx,
        parts: {
            readonly inventory: Inventory;
            readonly exceptions: Exceptions;
            readonly engine: { info(): Promise<EngineInfo> };
        }
    ) {
        this.#ctx = ctx;
        this.#inventory = parts.inventory;
        this.#exceptions = parts.exceptions;
        this.#engine = parts.engine;
    }

    /**
     * The specs with what exists already in place of what they would make: a volume or network that is there is used as it is, whatever the
     * input says of it.
     */
    async resolve<T extends JudgedSpec>(judged: readonly T[], stack: string | null): Promise<readonly T[]> {
        const [volumes, networks] = await Promise.all([
            this.#inventory.volumes(),
            this.#inventory.networks()
        ]);
        const mountOf = (mount: Mount): Mount => {
            const there =
                mount.volume === null || mount.source === null ? undefined : volumes.get(mount.source);
            if (there === undefined || mount.volume === null) {
                return mount;
            }
            const project = there.Labels?.[labelOf.project] ?? null;
            return {
                ...mount,
                volume: {
                    driver: there.Driver,
                    options: there.Options ?? {},
                    external: mount.volume.external || project !== stack
                }
            };
        };
        const networkOf = (use: NetworkUse): NetworkUse => {
            const there = networks.get(use.name);
            if (there === undefined) {
                return use;
            }
            const project = there.Labels?.[labelOf.project] ?? null;
            return { ...use, driver: there.Driver, external: use.external || project !== stack };
        };
        return judged.map((each) => ({
            ...each,
            spec: {
                ...each.spec,
                mounts: each.spec.mounts.map(mountOf),
                networks: each.spec.networks.map(networkOf)
            }
        }));
    }

    /** What the policy says of specs. `subject`: `container:NAME` or `stack:NAME`. */
    async judge(
        judged: readonly JudgedSpec[],
        subject: string,
        siblings: ReadonlySet<string> = new Set()
    ): Promise<readonly Finding[]> {
        const { bindRoots, stackFolder, safeCapabilities, socket } = this.#ctx.settings;
        const [kind = '', name = ''] = subject.split(/:(.*)/s);
        const info = await this.#engine.info();
        const context: PolicyContext = {
            roots: [...bindRoots, ...(kind === 'stack' ? [posix.join(stackFolder, name)] : [])],
            links: await this.#links(judged.flatMap(({ spec }) => spec.mounts)),
            safeCapabilities,
            sockets: [info.socket, ...(socket === undefined ? [] : [socket])],
            exceptions: await this.#exceptions.of(subject),
            siblings
        };
        return judged.flatMap(({ service, spec }) => judge(spec, service, context));
    }

    /** @throws POLICY_REFUSED 42253 */
    refuse(findings: readonly Finding[]): void {
        const refused = refusals(findings);
        if (refused.length > 0) {
            throw policyRefused(refused);
        }
    }

    /** Bind sources on whose way there is a link, or that cannot be looked at. What does not exist yet is no link. */
    async #links(mounts: readonly Mount[]): Promise<ReadonlySet<string>> {
        const found = new Set<string>();
        const files = this.#ctx.files('/');
        for (const { type, source } of mounts) {
            if (type !== 'bind' || source === null || found.has(source)) {
                continue;
            }
            const parts = posix.normalize(source).split('/').filter(Boolean);
            for (let length = 1; length <= parts.length; length += 1) {
                try {
                    const entry = await files.stat(parts.slice(0, length).join('/'));
                    if (entry.type === 'link') {
                        found.add(source);
                        break;
                    }
                } catch (error) {
                    if (!isFailure(error) || error.code !== 40400) {
                        found.add(source);
                    }
                    break;
                }
            }
        }
        return found;
    }
}
