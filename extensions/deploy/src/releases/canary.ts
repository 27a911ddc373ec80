/** Gives a new release a share of the requests first, and takes it back when it is not healthy. */
import { setTimeout as wait } from 'node:timers/promises';

import type { DeploymentRow } from '../entities.ts';
import { DeploymentFailed, switchFailed } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Candidate } from './candidate.ts';
import type { Hosts, Share } from './hosts.ts';
import type { Releases } from './releases.ts';

const lookMs = 1_000;
const whole = 100;

/** What ends a canary before its time. */
type Verdict = 'promote' | 'abort';

/** Runs canaries, one of a project at a time. */
export class Canaries {
    readonly #hosts: Hosts;
    readonly #releases: Releases;
    readonly #ctx: Ctx;
    readonly #verdicts = new Map<number, (verdict: Verdict) => void>();

    constructor(ctx: Ctx, hosts: Hosts, releases: Releases) {
        this.#ctx = ctx;
        this.#hosts = hosts;
        this.#releases = releases;
    }

    /** Says how the canary of a deployment ends; false where there is none. */
    decide(deploymentId: number, verdict: Verdict): boolean {
        const decide = this.#verdicts.get(deploymentId);
        decide?.(verdict);
        return decide !== undefined;
    }

    /**
     * Lets the engine send a share of the requests to the release until the time of the canary is over.
     *
     * @throws DeploymentFailed CANARY_REVERTED when it is not healthy, or was aborted; the older release then has all requests again
     */
    async observe(candidate: Candidate, before: DeploymentRow): Promise<void> {
        const { project, deployment, log } = candidate;
        const { canary } = project.config;
        if (canary === null || before.port === null || deployment.port === null) {
            return;
        }
        const older: Share = { port: before.port, weight: whole - canary.weight };
        await this.#hosts
            .lead(project, {
                runtime: 'process',
                shares: [older, { port: deployment.port, weight: canary.weight }]
            })
            .catch((error: unknown) => {
                throw switchFailed(error);
            });
        log.say(`It gets ${canary.weight} of ${whole} requests for ${canary.seconds} s`, 'switch');
        if (canary.rules.length > 0 && this.#ctx.plugins.monitoring === undefined) {
            log.say(
                'The plugin monitoring does not run: none of its rules takes this release back',
                'switch'
            );
        }
        try {
            await this.#watch(candidate, canary);
        } catch (error) {
            await this.#hosts.lead(project, { runtime: 'process', shares: [{ ...older, weight: 1 }] });
            throw error;
        }
    }

    async #watch(
        candidate: Candidate,
        { seconds, failures, rules }: NonNullable<Candidate['project']['config']['canary']>
    ): Promise<void> {
        const { deployment, signal } = candidate;
        const decided = Promise.withResolvers<Verdict>();
        this.#verdicts.set(deployment.id, decided.resolve);
        try {
            const began = new Date();
            const end = performance.now() + seconds * 1_000;
            let bad = 0;
            while (performance.now() < end) {
                const verdict = await Promise.race([decided.promise, wait(lookMs, undefined, { signal })]);
                if (verdict === 'promote') {
                    return;
                }
                if (verdict === 'abort') {
                    throw new DeploymentFailed('CANARY_REVERTED', 'The canary was aborted');
                }
                await this.#refuseAlerts(rules, began);
                const problem = await this.#releases.problem(candidate);
                bad = problem === null ? 0 : bad + 1;
                if (bad >= failures) {
                    throw new DeploymentFailed(
                        'CANARY_REVERTED',
                        `${bad} times in a row it was not healthy: ${problem}`
                    );
                }
            }
        } finally {
            this.#verdicts.delete(deployment.id);
        }
    }

    /** @throws DeploymentFailed CANARY_REVERTED when a rule of monitoring has fired since the canary began */
    async #refuseAlerts(rules: readonly number[], began: Date): Promise<void> {
        const { monitoring } = this.#ctx.plugins;
        if (rules.length === 0 || monitoring === undefined) {
            return;
        }
        const alerts = await monitoring.alerts({ rules }).catch((error: unknown) => {
            this.#ctx.log.warn('Monitoring gave no alerts', { error: String(error) });
            return [];
        });
        const fired = alerts.find(({ firing, since }) => firing && since !== null && since >= began);
        if (fired !== undefined) {
            throw new DeploymentFailed('CANARY_REVERTED', `Rule ${fired.rule} of monitoring fired`);
        }
    }
}
