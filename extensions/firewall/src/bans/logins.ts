/** Failed logins of the panel become bans. */
import { type Hooks, isFailure } from '@portico/sdk';

import { formatInterval, type Interval, readPeer } from '../address/interval.ts';
import { OffenderEntity } from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { Bans } from './bans.ts';

/** Wrong password, wrong challenge, wrong second factor, and attempts beyond the panel's own limit. */
const failures: ReadonlySet<number> = new Set([40110, 40112, 40114, 42900]);
const longestSeconds = 7 * 86_400;
/** An address that made no ban for so long begins anew. */
const forgetMs = 30 * 86_400_000;
const mostWatched = 50_000;

/** Counts failed logins by address, an IPv6 one with all of its /64, and bans what fails too often. */
export class LoginWatch {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #bans: Bans;
    /** Times of failures by address. */
    readonly #failures = new Map<string, number[]>();

    constructor(ctx: Ctx, machine: Machine, bans: Bans) {
        this.#ctx = ctx;
        this.#machine = machine;
        this.#bans = bans;
    }

    /** Takes an entry of the audit log. */
    async see({ action, outcome, code, ip }: Hooks['audit.recorded']['payload']): Promise<void> {
        const { loginBans, loginFailures, loginWindowSeconds } = this.#ctx.settings;
        const peer = ip === null || !loginBans ? null : readPeer(ip);
        if (peer === null) {
            return;
        }
        const group = groupOf(peer);
        const key = formatInterval(group);
        if (action === 'login' && outcome === 'success') {
            this.#failures.delete(key);
            return;
        }
        if (action !== 'login_failed' || !failures.has(code)) {
            return;
        }
        const now = this.#machine.now();
        const times = (this.#failures.get(key) ?? []).filter((at) => at > now - loginWindowSeconds * 1000);
        times.push(now);
        this.#failures.delete(key);
        this.#failures.set(key, times);
        if (times.length >= loginFailures) {
            this.#failures.delete(key);
            await this.#ban(group, key);
        }
        this.#forget();
    }

    async #ban(group: Interval, key: string): Promise<void> {
        const until = await this.#bans.untilOf(group);
        const times = await this.#count(key);
        const seconds = Math.min(
            longestSeconds,
            this.#ctx.settings.loginBanSeconds * 2 ** Math.min(20, times - 1)
        );
        // A ban that lasts longer, such as one by hand, stays as it is.
        if (until === null || (until !== undefined && until > this.#machine.now() + seconds * 1000)) {
            return;
        }
        try {
            const { id } = await this.#bans.ban({
                address: key,
                seconds,
                reason: 'Too many failed logins to the panel',
                source: 'login',
                spared: []
            });
            await this.#ctx.audit({
                action: 'ban',
                resource: 'ban',
                resourceId: id,
                after: { address: key, seconds }
            });
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            if (error.reason !== 'PROTECTED') {
                this.#ctx.log.warn('An address could not be banned', {
                    address: key,
                    reason: error.reason,
                    error: error.message
                });
            }
        }
    }

    /** How often this address was banned, this time included. */
    async #count(address: string): Promise<number> {
        const now = this.#machine.now();
        return this.#ctx.db.write(async (em) => {
            const known = await em.findOne(OffenderEntity, { address });
            const times = known === null || known.lastAt < now - forgetMs ? 1 : known.times + 1;
            await em.upsert(OffenderEntity, { address, times, lastAt: now });
            return times;
        });
    }

    /** An attacker with many addresses must not fill the memory: the oldest are forgotten. */
    #forget(): void {
        while (this.#failures.size > mostWatched) {
            const [oldest = ''] = this.#failures.keys();
            this.#failures.delete(oldest);
        }
    }
}

function groupOf(peer: Interval): Interval {
    if (peer.family === 'ipv4') {
        return peer;
    }
    const host = (1n << 64n) - 1n;
    return { family: 'ipv6', from: peer.from & ~host, to: peer.from | host };
}
