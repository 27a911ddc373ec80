/** Sets whose elements come from outside: fetched by hand and on time. A list that fails keeps its last good elements. */
import { type Actor, errors, isFailure, KeyedMutex, type TaskView } from '@portico/sdk';

import {
    AddressInvalid,
    type Family,
    formatInterval,
    type Interval,
    mergeIntervals,
    parsePrefix,
    readPrefix
} from '../address/interval.ts';
import type { Draft } from '../draft/draft.ts';
import { type AddressSet, most, tooManyElements } from '../draft/model.ts';
import { fail } from '../errors.ts';
import type { Nft } from '../kernel/nft.ts';
import { replaceElements } from '../ruleset/commands.ts';
import { kernelSet } from '../ruleset/ruleset.ts';
import type { Ctx } from '../settings.ts';
import type { StateStore } from '../trial/state.ts';
import { type Contents, elementsOf, type Entry } from './contents.ts';

/** What the lists work with. */
export interface ListsOptions {
    readonly ctx: Ctx;
    readonly draft: Draft;
    readonly contents: Contents;
    readonly nft: Nft;
    readonly store: StateStore;
    now(): number;
    /** Milliseconds that a list may take. */
    limitMs(): number;
    /** Is called when elements of an applied set changed. */
    onChange(): void;
}

/** What a fetch brought. */
export interface Fetched {
    readonly elements: number;
    readonly skipped: number;
}

const mostBytes = 16 * 2 ** 20;
const hourMs = 3_600_000;

/** Keeps address lists, fetches those with an address, and fills the sets of the ruleset. */
export class Lists {
    readonly #options: ListsOptions;
    readonly #mutex = new KeyedMutex();

    constructor(options: ListsOptions) {
        this.#options = options;
    }

    /** Adds and removes elements of a set by hand; the kernel gets them at once. @throws NOT_FOUND 40400, VALIDATION_FAILED 40001 */
    async change(
        id: number,
        {
            add,
            remove,
            seconds
        }: {
            readonly add: readonly string[];
            readonly remove: readonly string[];
            readonly seconds: number | null;
        }
    ): Promise<number> {
        const set = await this.#find(id);
        if (set.source !== 'manual') {
            throw errors.invalid([{ path: 'add', message: 'The elements of this set come from elsewhere' }]);
        }
        const added = read('add', add, set.family);
        const removed = new Set(read('remove', remove, set.family).map(formatInterval));
        return this.#mutex.run(String(id), async () => {
            const { contents, now } = this.#options;
            const until = seconds === null ? null : now() + seconds * 1000;
            const byText = new Map(
                (await contents.entries(id)).map((entry) => [formatInterval(entry.interval), entry])
            );
            removed.forEach((text) => byText.delete(text));
            added.forEach((interval) => byText.set(formatInterval(interval), { interval, until }));
            await this.#put(set, [...byText.values()], {});
            return byText.size;
        });
    }

    /** Fetches a set, as a task. @throws NOT_FOUND 40400, VALIDATION_FAILED 40001 for a set by hand, IN_USE 40901 */
    async refresh(id: number, actor: Actor): Promise<TaskView> {
        const set = await this.#find(id);
        if (set.source === 'manual') {
            throw errors.invalid([{ path: 'id', message: 'The elements of this set are given by hand' }]);
        }
        return this.#options.ctx.task(
            {
                kind: 'refresh',
                title: `Fetch the list of ${set.name}`,
                access: 'write',
                actor,
                key: `refresh-${id}`,
                resource: `set ${set.name}`
            },
            ({ signal }) => this.fetch(id, signal)
        );
    }

    /** Fetches a set in the background; a failure is recorded beside the set. */
    refreshSoon(id: number): void {
        this.fetch(id, this.#options.ctx.signal).catch((error: unknown) => this.#logged(id, error));
    }

    /** Fetches every set that is due. */
    async refreshDue(signal: AbortSignal): Promise<void> {
        const { draft, contents, now } = this.#options;
        for (const { id, source, everyHours } of (await draft.model()).sets) {
            const { updatedAt } = await contents.state(id);
            if (source !== 'manual' && (updatedAt === null || updatedAt + everyHours * hourMs <= now())) {
                await this.fetch(id, signal).catch((error: unknown) => this.#logged(id, error));
            }
        }
    }

    /** Fetches a set and gives it to the kernel. @throws LIST_FAILED 50250 */
    fetch(id: number, signal: AbortSignal): Promise<Fetched> {
        return this.#mutex.run(String(id), async () => {
            const set = await this.#find(id);
            try {
                const { intervals, skipped } = await this.#download(set, signal);
                const entries = mergeIntervals(intervals).map((interval) => ({ interval, until: null }));
                await this.#put(set, entries, { skipped, updatedAt: this.#options.now(), error: null });
                return { elements: entries.length, skipped };
            } catch (error) {
                if (!signal.aborted) {
                    await this.#options.contents.storeFailure(
                        id,
                        isFailure(error) ? error.message : String(error)
                    );
                }
                throw error;
            }
        });
    }

    async #download(
        set: AddressSet,
        signal: AbortSignal
    ): Promise<{ readonly intervals: readonly Interval[]; readonly skipped: number }> {
        const source = this.#options.ctx.settings.countrySource ?? '';
        const urls =
            set.source === 'url'
                ? [set.url ?? '']
                : set.countries.map((country) => source.replaceAll('{country}', country));
        const lists = [];
        for (const url of urls) {
            const list = parseList(await this.#text(url, signal), set.family);
            if (list.intervals.length === 0 && list.skipped > 0) {
                // Such as the page of a server that moved: it must not empty a set that keeps attackers out.
                throw fail.LIST_FAILED({
                    why: `it holds no address of ${set.family === 'ipv4' ? 'IPv4' : 'IPv6'}`
                });
            }
            lists.push(list);
        }
        return {
            intervals: lists.flatMap(({ intervals }) => intervals),
            skipped: lists.reduce((sum, { skipped }) => sum + skipped, 0)
        };
    }

    async #text(url: string, signal: AbortSignal): Promise<string> {
        const limitMs = this.#options.limitMs();
        const bound = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
        const failed = (why: string, cause?: unknown): Error => fail.LIST_FAILED({ why }, { cause });
        try {
            const response = await this.#options.ctx.fetch(url, { signal: bound });
            if (!response.ok || response.body === null) {
                await response.body?.cancel();
                throw failed(`the server answers ${response.status}`);
            }
            const chunks: Uint8Array[] = [];
            let bytes = 0;
            for await (const chunk of response.body) {
                bytes += chunk.byteLength;
                if (bytes > mostBytes) {
                    throw failed('it is larger than 16 MiB');
                }
                chunks.push(chunk);
            }
            return Buffer.concat(chunks).toString('latin1');
        } catch (error) {
            if (isFailure(error) || signal.aborted) {
                throw error;
            }
            const { cause } = error as { readonly cause?: { readonly message?: string } };
            const late = `it takes longer than ${limitMs / 1000} s`;
            throw failed(bound.aborted ? late : (cause?.message ?? String(error)), error);
        }
    }

    /** Stores elements, and gives them to the kernel where the set is there. */
    async #put(
        set: AddressSet,
        entries: readonly Entry[],
        state: Parameters<Contents['store']>[2]
    ): Promise<void> {
        const { contents, draft, nft, store, now } = this.#options;
        const others = (await draft.model()).sets.flatMap(({ id }) => (id === set.id ? [] : [id]));
        if (entries.length + (await contents.total(others)) > most.elements) {
            throw errors.invalid([tooManyElements('add')]);
        }
        const before = await contents.entries(set.id);
        await contents.store(set.id, entries, state);
        const { applied, trial } = await store.read();
        const isApplied = [applied?.model, trial?.model].some((model) =>
            model?.sets.some(({ id }) => id === set.id)
        );
        if (!isApplied) {
            return;
        }
        this.#options.onChange();
        const elements = elementsOf(await contents.pieces(set.id), now());
        await nft.apply(replaceElements(kernelSet(set, elements))).catch(async (error: unknown) => {
            if (
                isFailure(error) &&
                error.reason === 'NFT_REJECTED' &&
                String(error.data?.['message']).includes('No such file')
            ) {
                return; // The table is not there now; it comes back with these elements.
            }
            await contents.store(set.id, before);
            throw error;
        });
    }

    async #find(id: number): Promise<AddressSet> {
        const found = (await this.#options.draft.model()).sets.find((set) => set.id === id);
        if (found === undefined) {
            throw errors.notFound('There is no set of that id');
        }
        return found;
    }

    #logged(id: number, error: unknown): void {
        if (!this.#options.ctx.signal.aborted) {
            this.#options.ctx.log.warn('A list could not be fetched', { set: id, error });
        }
    }
}

/** Reads a list with an address or prefix on each line. Comments and empty lines do not count; what is no address of the family does. */
export function parseList(
    text: string,
    family: Family
): { readonly intervals: readonly Interval[]; readonly skipped: number } {
    const intervals: Interval[] = [];
    let skipped = 0;
    for (const line of text.split('\n')) {
        const [word = ''] = line
            .replace(/[#;].*$/, '')
            .trim()
            .split(/[\s,]/);
        if (word === '') {
            continue;
        }
        const interval = readPrefix(word);
        if (interval?.family === family) {
            intervals.push(interval);
        } else {
            skipped += 1;
        }
    }
    return { intervals, skipped };
}

/** @throws VALIDATION_FAILED 40001 with every text that is no address of the family */
function read(path: string, texts: readonly string[], family: Family): readonly Interval[] {
    const faults: { readonly path: string; readonly message: string }[] = [];
    const intervals = texts.flatMap((text, index) => {
        try {
            const interval = parsePrefix(text);
            if (interval.family === family) {
                return [interval];
            }
            faults.push({
                path: `${path}.${index}`,
                message: `The set holds addresses of ${family === 'ipv4' ? 'IPv4' : 'IPv6'}`
            });
        } catch (error) {
            if (!(error instanceof AddressInvalid)) {
                throw error;
            }
            faults.push({ path: `${path}.${index}`, message: error.message });
        }
        return [];
    });
    if (faults.length > 0) {
        throw errors.invalid(faults.slice(0, 100));
    }
    return intervals;
}
