/** Bans: addresses whose packets are dropped. They are in the kernel at once, apart from the rules, and end there by themselves. */
import { errors, isFailure, Mutex } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import {
    AddressInvalid,
    covers,
    type Family,
    formatInterval,
    type Interval,
    overlaps,
    parsePrefix,
    parseWritten,
    prefixLengthOf
} from '../address/interval.ts';
import { layOut, type Piece } from '../address/layout.ts';
import { most } from '../draft/model.ts';
import { BanEntity, type BanRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Nft } from '../kernel/nft.ts';
import { elementsOf } from '../lists/contents.ts';
import { isOwn, type Machine, touchesLoopback } from '../machine.ts';
import { banChains, banSet, banSets, compileBans } from '../ruleset/bans.ts';
import { changeElements, replaceElements, wholeTable } from '../ruleset/commands.ts';
import type { Ruleset } from '../ruleset/ruleset.ts';
import type { Ctx } from '../settings.ts';

/** An address that is to be banned, for how long and why. */
export interface NewBan {
    readonly address: string;
    /** Null: until it is lifted. */
    readonly seconds: number | null;
    readonly reason: string | null;
    readonly source: BanRow['source'];
    /** Addresses that this ban must not touch, such as that of the caller. */
    readonly spared: readonly Interval[];
}

/** What is needed for bans. */
export interface BansOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly nft: Nft;
    /** Whether bans may be in the kernel now: not after an admin took the table away. */
    isInForce(): Promise<boolean>;
    /** Is called when there are other bans than before. */
    onChange(): void;
    /** Is called when the own table may look different than before. */
    onTableChange(): Promise<void>;
}

type BanPiece = Piece<number>;
const shortest: Readonly<Record<Family, number>> = { ipv4: 16, ipv6: 48 };
const families = ['ipv4', 'ipv6'] as const;

/** Keeps the bans, and the pieces of the ruleset that are made of them. */
export class Bans {
    readonly #options: BansOptions;
    readonly #mutex = new Mutex();
    #rows: Map<number, { readonly row: BanRow; readonly interval: Interval }> | null = null;
    #pieces: Readonly<Record<Family, readonly BanPiece[]>> = { ipv4: [], ipv6: [] };

    constructor(options: BansOptions) {
        this.#options = options;
    }

    /** Bans that have not ended, oldest first, with the packets that each dropped; null where the kernel does not count. */
    async list(): Promise<readonly (BanRow & { readonly packets: number | null })[]> {
        const now = this.#options.machine.now();
        const rows = [...(await this.#load()).values()]
            .map(({ row }) => row)
            .filter(({ until }) => until === null || until > now);
        const packets = rows.length === 0 ? new Map<number, number>() : await this.#packets();
        return rows.map((row) => ({ ...row, packets: packets?.get(row.id) ?? null }));
    }

    /** Bans an address, or changes the ban of that address. @throws VALIDATION_FAILED 40001, PROTECTED 40951 */
    async ban({ address, seconds, reason, source, spared }: NewBan): Promise<BanRow> {
        const interval = this.check(address, spared);
        return this.#mutex.run(async () => {
            const { ctx, machine } = this.#options;
            const rows = await this.#load();
            const canonical = formatInterval(interval);
            // Those that have ended are forgotten only now and then.
            const others = [...rows.values()].filter(
                ({ row: each }) =>
                    each.address !== canonical && (each.until === null || each.until > machine.now())
            );
            if (others.length >= most.bans) {
                throw errors.invalid([
                    { path: 'address', message: `There are ${most.bans} bans, and no more are possible` }
                ]);
            }
            const now = machine.now();
            const until = seconds === null ? null : now + seconds * 1000;
            const { row, before } = await ctx.db.write(async (em) => {
                const known = await findRow(em, BanEntity, { address: canonical });
                if (known !== null) {
                    const before = { ...known };
                    Object.assign(known, { until, reason, source });
                    return { row: { ...known }, before };
                }
                const made = { address: canonical, source, reason, until, createdAt: now };
                return { row: { ...made, id: await em.insert(BanEntity, made) }, before: null };
            });
            rows.set(row.id, { row, interval });
            await this.#sync().catch(async (error: unknown) => {
                await this.#restore(row.id, before);
                throw error;
            });
            this.#options.onChange();
            return row;
        });
    }

    /** Puts a ban back to what it was, after the kernel did not take the change. */
    async #restore(id: number, before: BanRow | null): Promise<void> {
        const rows = await this.#load();
        if (before === null) {
            await this.#options.ctx.db.write((em) => em.nativeDelete(BanEntity, { id }));
            rows.delete(id);
        } else {
            await this.#options.ctx.db.write((em) => em.upsert(BanEntity, before));
            rows.set(id, { row: before, interval: parseWritten(before.address) });
        }
    }

    /** Lifts a ban. @throws NOT_FOUND 40400 */
    lift(id: number): Promise<BanRow> {
        return this.#mutex.run(async () => {
            const rows = await this.#load();
            const found = rows.get(id);
            if (found === undefined) {
                throw errors.notFound('There is no ban of that id');
            }
            rows.delete(id);
            await this.#sync().catch((error: unknown) => {
                rows.set(id, found);
                throw error;
            });
            await this.#options.ctx.db.write((em) => em.nativeDelete(BanEntity, { id }));
            this.#options.onChange();
            return found.row;
        });
    }

    /** The ban that holds an address, as a text; null for none. For evaluators, which ask often. */
    async finder(): Promise<(source: Interval) => string | null> {
        const now = this.#options.machine.now();
        const bans = [...(await this.#load()).values()].filter(
            ({ row: { until } }) => until === null || until > now
        );
        return (source) => bans.find(({ interval }) => overlaps(interval, source))?.row.address ?? null;
    }

    /** Whether an address is banned as a whole, and until when; undefined when it is not. */
    async untilOf(address: Interval): Promise<number | null | undefined> {
        const now = this.#options.machine.now();
        const ends = [...(await this.#load()).values()]
            .filter(
                ({ row: { until }, interval }) => covers(interval, address) && (until === null || until > now)
            )
            .map(({ row }) => row.until);
        return ends.length === 0
            ? undefined
            : ends.includes(null)
              ? null
              : Math.max(...ends.map((end) => end ?? 0));
    }

    /** The part of the table for bans, with the elements of now. `isLasting`: only bans without an end, for a file that is read later. */
    async ruleset(isLasting = false): Promise<Ruleset> {
        const pieces = await this.#layOut();
        const now = this.#options.machine.now();
        return compileBans((family) =>
            elementsOf(isLasting ? pieces[family].filter(({ until }) => until === null) : pieces[family], now)
        );
    }

    /** Puts the kernel's sets to the bans, as far as they are in the table. After the table was made anew. */
    async resync(): Promise<void> {
        await this.#mutex.run(async () => {
            this.#pieces = { ipv4: [], ipv6: [] };
            await this.#load();
            await this.#sync();
        });
    }

    /** Forgets bans that have ended; the kernel forgot them by itself. */
    async prune(): Promise<void> {
        await this.#mutex.run(async () => {
            const now = this.#options.machine.now();
            const rows = await this.#load();
            const over = [...rows.values()]
                .filter(({ row: { until } }) => until !== null && until <= now)
                .map(({ row }) => row.id);
            if (over.length > 0) {
                await this.#options.ctx.db.write((em) => em.nativeDelete(BanEntity, { id: { $in: over } }));
                over.forEach((id) => rows.delete(id));
                this.#pieces = await this.#layOut();
            }
        });
    }

    /** Reads an address that may be banned, here or by another program. @throws VALIDATION_FAILED 40001, PROTECTED 40951 */
    check(address: string, spared: readonly Interval[]): Interval {
        const interval = readBan(address);
        const length = prefixLengthOf(interval) ?? 0;
        if (length < shortest[interval.family]) {
            throw errors.invalid([
                {
                    path: 'address',
                    message: `A ban holds at most a /${shortest[interval.family]} of ${interval.family === 'ipv4' ? 'IPv4' : 'IPv6'}`
                }
            ]);
        }
        const { ctx, machine } = this.#options;
        const refused = (why: string): Error => fail.PROTECTED({ address: formatInterval(interval), why });
        if (touchesLoopback(interval)) {
            throw refused('it is this machine');
        }
        if (isOwn(machine, interval) || machine.addresses().some((own) => overlaps(own.address, interval))) {
            throw refused('it holds an address of this machine');
        }
        if (ctx.settings.neverBan.some((text) => overlaps(parsePrefix(text), interval))) {
            throw refused('the setting neverBan names it');
        }
        if (spared.some((each) => overlaps(each, interval))) {
            throw refused('it is your own address');
        }
        return interval;
    }

    async #load(): Promise<Map<number, { readonly row: BanRow; readonly interval: Interval }>> {
        if (this.#rows === null) {
            const rows = await this.#options.ctx.db.read((em) =>
                findRows(em, BanEntity, {}, { orderBy: { id: 'asc' } })
            );
            this.#rows = new Map(
                rows.map((row) => [row.id, { row: { ...row }, interval: parseWritten(row.address) }])
            );
        }
        return this.#rows;
    }

    async #layOut(): Promise<Readonly<Record<Family, readonly BanPiece[]>>> {
        const now = this.#options.machine.now();
        const all = [...(await this.#load()).values()].filter(
            ({ row: { until } }) => until === null || until > now
        );
        const of = (family: Family): readonly BanPiece[] =>
            layOut(
                all
                    .filter(({ interval }) => interval.family === family)
                    .map(({ row, interval }) => ({ ...interval, until: row.until, owner: row.id }))
            );
        return { ipv4: of('ipv4'), ipv6: of('ipv6') };
    }

    /** Brings the difference to the kernel. What the kernel forgot meanwhile makes the difference fail; then it gets the whole list. */
    async #sync(): Promise<void> {
        const { nft, machine, isInForce } = this.#options;
        const before = this.#pieces;
        const after = await this.#layOut();
        if (!(await isInForce())) {
            this.#pieces = after;
            return;
        }
        const now = machine.now();
        const isEmpty = families.every((family) => before[family].length === 0);
        for (const family of families) {
            const change = {
                remove: elementsOf(difference(before[family], after[family]), now),
                add: elementsOf(difference(after[family], before[family]), now)
            };
            if (change.remove.length + change.add.length === 0) {
                continue;
            }
            const set = banSet(family, elementsOf(after[family], now));
            try {
                if (isEmpty) {
                    await nft.apply(replaceElements(set));
                } else if (await nft.hasChains(banChains)) {
                    await nft.apply(changeElements(set, change));
                } else {
                    await this.#putTable();
                }
            } catch (error) {
                if (!isFailure(error) || error.reason !== 'NFT_REJECTED') {
                    throw error;
                }
                await this.#putTable();
            }
        }
        this.#pieces = after;
    }

    /** Makes chains and sets of bans where they are missing, and gives the sets all elements. */
    async #putTable(): Promise<void> {
        const { nft, onTableChange } = this.#options;
        const ruleset = await this.ruleset();
        const present = await nft.present();
        const isThere = ruleset.chains.every(({ name }) => present?.chains.has(name) ?? false);
        await nft.apply(
            isThere
                ? { nftables: ruleset.sets.flatMap((set) => replaceElements(set).nftables) }
                : wholeTable([ruleset], false)
        );
        if (!isThere) {
            await onTableChange();
        }
    }

    /** Packets by the id of the ban; null when the kernel cannot be asked. */
    async #packets(): Promise<ReadonlyMap<number, number> | null> {
        const counts = new Map<number, number>();
        try {
            for (const family of families) {
                const owners = new Map(
                    this.#pieces[family].map((piece) => [formatInterval(piece), piece.owner])
                );
                if (owners.size === 0) {
                    continue;
                }
                for (const element of await this.#options.nft.elements(banSets[family])) {
                    const { text, packets } = readElement(element);
                    const owner = owners.get(text);
                    if (owner !== undefined) {
                        counts.set(owner, (counts.get(owner) ?? 0) + packets);
                    }
                }
            }
        } catch (error) {
            if (isFailure(error)) {
                return null;
            }
            throw error;
        }
        return counts;
    }
}

/** What is in the first list and not in the second. */
function difference(some: readonly BanPiece[], others: readonly BanPiece[]): readonly BanPiece[] {
    const key = (piece: BanPiece): string => `${piece.from}-${piece.to}-${piece.until}`;
    const known = new Set(others.map(key));
    return some.filter((piece) => !known.has(key(piece)));
}

/** @throws VALIDATION_FAILED 40001 */
function readBan(address: string): Interval {
    try {
        return parsePrefix(address);
    } catch (error) {
        if (error instanceof AddressInvalid) {
            throw errors.invalid([{ path: 'address', message: error.message }]);
        }
        throw error;
    }
}

/** An element of a set as `nft -j` lists it: a value, or a value with more. */
function readElement(element: unknown): { readonly text: string; readonly packets: number } {
    const { elem } = element as {
        readonly elem?: { readonly val: unknown; readonly counter?: { readonly packets: number } };
    };
    const value = elem === undefined ? element : elem.val;
    const { prefix, range } = value as {
        readonly prefix?: { readonly addr: string; readonly len: number };
        readonly range?: readonly [string, string];
    };
    const text =
        typeof value === 'string'
            ? value
            : prefix === undefined
              ? (range ?? []).join('-')
              : `${prefix.addr}/${prefix.len}`;
    return { text, packets: elem?.counter?.packets ?? 0 };
}
