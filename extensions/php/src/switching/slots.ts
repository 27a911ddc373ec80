/**
 * The two slots of a site. What replaces the PHP-FPM that serves is started in the free slot, and takes over by one rename of the link that the
 * engine connects to. PHP-FPM's own reload is not used: under load, it loses a request now and then.
 */
import { setTimeout as wait } from 'node:timers/promises';

import type { ConfigTarget, Configurations } from '../config/configurations.ts';
import { hasStatusListen, statusPath } from '../config/render.ts';
import { askFastCgi } from '../fpm/fastcgi.ts';
import type { Masters } from '../fpm/masters.ts';
import { readStatus } from '../fpm/status.ts';
import type { Ctx } from '../settings.ts';
import type { Accounts } from '../sites/machine/accounts.ts';
import type { Folders } from '../sites/machine/folders.ts';
import { otherSlot, type Site, socketPath } from '../sites/site.ts';
import type { SiteChange, Store } from '../sites/store.ts';
import type { Releases } from '../versions/releases.ts';

/** What the slots need. */
export interface SlotParts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly releases: Releases;
    readonly accounts: Accounts;
    readonly folders: Folders;
    readonly configurations: Configurations;
    readonly masters: Masters;
}

const drainPollMs = 50;
/** A connection that was being made while the link changed has arrived after this time. */
const arrivalMs = 20;

/** Starts slots, connects visitors to them, and ends them. The caller holds the lock of the site. */
export class Slots {
    readonly #parts: SlotParts;

    constructor(parts: SlotParts) {
        this.#parts = parts;
    }

    /** Starts PHP-FPM in the slot of `next`. It gets no request yet. @throws PHP_REJECTED 42250, SITE_DOWN 50351 */
    async start(next: Site): Promise<void> {
        const target = await this.#target(next);
        await this.#parts.configurations.place(target);
        await this.#serve(target);
    }

    /** Does the same for a site that is new: nothing serves that a bad configuration could end, so its start is what tries it. */
    async startFirst(site: Site): Promise<void> {
        const { configurations } = this.#parts;
        const target = await this.#target(site);
        await configurations.write(target);
        try {
            await this.#serve(target);
        } catch (error) {
            await configurations.mustPass(target);
            throw error;
        }
    }

    async #target(site: Site): Promise<ConfigTarget> {
        const { accounts, releases } = this.#parts;
        const { slot, revision } = site;
        const release = await releases.get(site.release);
        return { site, slot, release, revision, account: await accounts.own(site.account, site.token) };
    }

    async #serve({ site, slot, release, revision }: ConfigTarget): Promise<void> {
        const { masters } = this.#parts;
        await masters.put(site, slot, release);
        await masters.waitUp(site, slot, revision);
    }

    /** Lets all new requests go to the slot of the site. */
    async connect(site: Site): Promise<void> {
        await this.#parts.folders.linkSocket(site);
    }

    /** Ends a slot that gets no more requests, after the last that it has got. */
    async retire(site: Site): Promise<void> {
        await this.#drain(site);
        await this.#parts.masters.remove(site, site.slot);
    }

    /**
     * Replaces the PHP-FPM that serves a site by one with this change, without a lost request. A panel that is killed meanwhile has the old one
     * serve, unless the change is in the database.
     *
     * @throws PHP_REJECTED 42250, SITE_DOWN 50351 when the new one does not come up; the old one then serves as before
     */
    async replace(site: Site, changed: Site, change: SiteChange): Promise<Site> {
        const { masters, store } = this.#parts;
        const next: Site = { ...changed, slot: otherSlot(site.slot), revision: site.revision + 1 };
        let saved: Site;
        try {
            await this.start(next);
            await this.connect(next);
            saved = await store.change(site.id, { ...change, slot: next.slot, revision: next.revision });
        } catch (error) {
            await this.connect(site);
            await masters.remove(next, next.slot);
            throw error;
        }
        await this.retire(site);
        return saved;
    }

    /** Waits until the last request of a slot that gets no more has ended, at most as long as one may last. */
    async #drain(site: Site): Promise<void> {
        const { ctx } = this.#parts;
        const path = statusPath(site.revision);
        const end = performance.now() + site.pool.requestSeconds * 1_000;
        await wait(arrivalMs);
        // Connections are taken in their order: with the answer to this one, no earlier one waits.
        await askFastCgi(ctx, socketPath(site, site.slot), {
            script: path,
            path,
            timeoutMs: site.pool.requestSeconds * 1_000
        }).catch(() => undefined);
        // Without a socket of its own, the request for the status is itself one that is under way.
        const own = hasStatusListen(site.release) ? 0 : 1;
        while (performance.now() < end) {
            const status = await readStatus(ctx, site, site.slot, site.revision).catch(() => null);
            if (status === null || status.active <= own) {
                return;
            }
            await wait(drainPollMs);
        }
    }
}
