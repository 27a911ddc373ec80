/**
 * Switches between releases by canary. A site has two slots, each with a master, a socket and a configuration of its own. The new release is
 * started in the slot that is free, gets a share of the requests, and takes over; so there is always a slot that serves, and which one it is
 * stands in the database.
 */
import { setTimeout as wait } from 'node:timers/promises';

import { errors, isFailure } from '@portico/sdk';

import type { SwitchRow, SwitchState } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Masters } from '../fpm/masters.ts';
import type { Ctx } from '../settings.ts';
import type { Share, SiteHosts } from '../sites/machine/hosts.ts';
import { otherSlot, type Site } from '../sites/site.ts';
import type { Store } from '../sites/store.ts';
import type { Releases } from '../versions/releases.ts';
import { Judge, SlotObserver } from './observer.ts';
import type { Slots } from './slots.ts';

/** How a site is switched. */
export interface SwitchInput {
    readonly release: string;
    /** Share of the requests that the new release gets while it is observed, 0 to 100. */
    readonly percent: number;
    readonly observeSeconds: number;
    readonly maxErrors: number;
    readonly path: string;
}

/** What switches to another version of PHP work with. */
export interface SwitchParts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly releases: Releases;
    readonly slots: Slots;
    readonly masters: Masters;
    readonly hosts: SiteHosts;
}

/** A switch that is under way. */
interface Running {
    readonly cancelled: AbortController;
    readonly ended: Promise<unknown>;
    requests: number;
    errors: number;
}

const everyMs = 1_000;

/** Switches sites. The caller holds the lock of the site. */
export class Switches {
    readonly #parts: SwitchParts;
    readonly #running = new Map<number, Running>();

    constructor(parts: SwitchParts) {
        this.#parts = parts;
    }

    /** The newest switch of a site, with the numbers of now; null when there was none. */
    async find(siteId: number): Promise<SwitchRow | null> {
        const row = (await this.#parts.store.switches()).get(siteId) ?? null;
        const running = this.#running.get(siteId);
        return row === null || running === undefined
            ? row
            : { ...row, requests: running.requests, errors: running.errors };
    }

    /** Ends a switch: all requests go back to the old release at once. @throws NOT_FOUND 40400 when none is under way */
    async cancel(siteId: number): Promise<void> {
        const running = this.#running.get(siteId);
        if (running === undefined) {
            throw errors.notFound('The site is not being switched');
        }
        running.cancelled.abort();
        await running.ended.catch(() => undefined);
    }

    /** Switches a site. @throws SWITCH_REVERTED 42252 with the evidence, when the new release was not as good as the old one */
    async run(
        site: Site,
        input: SwitchInput,
        signal: AbortSignal,
        log: (line: string) => void
    ): Promise<Site> {
        const cancelled = new AbortController();
        const { promise: ended, resolve } = Promise.withResolvers<void>();
        const running: Running = { cancelled, ended, requests: 0, errors: 0 };
        this.#running.set(site.id, running);
        try {
            return await this.#run(site, input, AbortSignal.any([signal, cancelled.signal]), log, running);
        } finally {
            this.#running.delete(site.id);
            resolve();
        }
    }

    /** Brings a site whose switch was cut back to the slot that the database names. */
    async recover(site: Site): Promise<void> {
        const { hosts, masters, slots, store } = this.#parts;
        const other = otherSlot(site.slot);
        const row = (await store.switches()).get(site.id);
        const isCut = row !== undefined && (row.state === 'starting' || row.state === 'observing');
        if (isCut || (await masters.info(site, other)) !== null) {
            await slots.connect(site);
            await hosts.gather(site);
            await masters.remove(site, other);
        }
        if (isCut) {
            const evidence = 'The plugin ended meanwhile; all requests go to the old release';
            await store.changeSwitch(site.id, { state: 'reverted', evidence, endedAt: Date.now() });
        }
    }

    async #run(
        site: Site,
        input: SwitchInput,
        signal: AbortSignal,
        log: (line: string) => void,
        running: Running
    ): Promise<Site> {
        const { releases, slots, store } = this.#parts;
        const { release: to, percent, observeSeconds, maxErrors, path } = input;
        const next: Site = { ...site, release: to, slot: otherSlot(site.slot), revision: site.revision + 1 };
        await store.beginSwitch({
            siteId: site.id,
            state: 'starting',
            from: site.release,
            to,
            percent,
            observeSeconds,
            maxErrors,
            path,
            requests: 0,
            errors: 0,
            evidence: null,
            startedAt: Date.now(),
            endedAt: null
        });
        try {
            await slots.start(next);
            log(`PHP ${(await releases.get(to)).version} runs beside PHP ${site.release}`);
            await this.#observe(site, next, input, { signal, log, running });
            return await this.#takeOver(site, next, running, log);
        } catch (error) {
            const state = signal.aborted ? 'cancelled' : 'reverted';
            await this.#revert(site, next, { state, error, running });
            log(`All requests go to PHP ${site.release} again`);
            throw error;
        }
    }

    async #observe(
        site: Site,
        next: Site,
        input: SwitchInput,
        { signal, log, running }: { signal: AbortSignal; log: (line: string) => void; running: Running }
    ): Promise<void> {
        const { ctx, hosts, masters, store } = this.#parts;
        const [before, after] = [
            await SlotObserver.start(ctx, site, site.slot),
            await SlotObserver.start(ctx, next, next.slot)
        ];
        const judge = new Judge(before, after, input);
        const look = async (): Promise<void> => {
            signal.throwIfAborted();
            const { requests, errors: failed, against } = await judge.judge(masters, next, next.slot);
            Object.assign(running, { requests, errors: failed });
            if (against !== null) {
                throw fail.SWITCH_REVERTED({ evidence: against });
            }
        };
        await look();
        if (input.observeSeconds === 0) {
            return;
        }
        await store.changeSwitch(site.id, { state: 'observing' });
        await hosts.spread(next, sharesOf(site.slot, next.slot, input.percent));
        log(`It gets ${input.percent} % of the requests for ${input.observeSeconds} s`);
        const end = performance.now() + input.observeSeconds * 1_000;
        while (performance.now() < end) {
            await wait(Math.min(everyMs, Math.max(0, end - performance.now())), undefined, { signal }).catch(
                () => undefined
            );
            await look();
        }
        log(`${running.requests} requests, ${running.errors} failed`);
    }

    async #takeOver(site: Site, next: Site, running: Running, log: (line: string) => void): Promise<Site> {
        const { hosts, slots, store } = this.#parts;
        await slots.connect(next);
        await hosts.gather(next);
        await store.changeSwitch(
            site.id,
            { state: 'done', requests: running.requests, errors: running.errors, endedAt: Date.now() },
            { release: next.release, slot: next.slot, revision: next.revision }
        );
        log(`PHP ${next.release} has taken over`);
        await slots.retire(site);
        return store.get(site.id);
    }

    async #revert(
        site: Site,
        next: Site,
        { state, error, running }: { state: SwitchState; error: unknown; running: Running }
    ): Promise<void> {
        const { hosts, slots, store } = this.#parts;
        await slots.connect(site);
        await hosts.gather(site);
        const evidence = isFailure(error) ? String(error.data?.['evidence'] ?? error.message) : String(error);
        await store.changeSwitch(site.id, {
            state,
            evidence,
            requests: running.requests,
            errors: running.errors,
            endedAt: Date.now()
        });
        await slots.retire(next);
    }
}

function sharesOf(before: number, after: number, percent: number): readonly Share[] {
    return [
        { slot: before, weight: 100 - percent },
        { slot: after, weight: percent }
    ].filter(({ weight }) => weight > 0);
}
