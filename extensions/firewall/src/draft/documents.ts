/** Takes the draft out as a document, and documents into the draft. */
import { errors } from '@portico/sdk';

import { formatInterval, parsePrefix, readPrefix } from '../address/interval.ts';
import type { Contents } from '../lists/contents.ts';
import type { Lists } from '../lists/lists.ts';
import type { Ctx } from '../settings.ts';
import { type FirewallDocument, planImport, type PlannedStep, toDocument } from './document.ts';
import type { Draft } from './draft.ts';
import { most, tooManyElements } from './model.ts';

/** Exports the draft as a document, and imports one into the draft. */
export class Documents {
    readonly #ctx: Ctx;
    readonly #draft: Draft;
    readonly #contents: Contents;
    readonly #lists: Lists;

    constructor(ctx: Ctx, draft: Draft, contents: Contents, lists: Lists) {
        this.#ctx = ctx;
        this.#draft = draft;
        this.#contents = contents;
        this.#lists = lists;
    }

    /** The draft as a document, with the elements of sets by hand. */
    async read(): Promise<object> {
        const model = await this.#draft.model();
        const elements = new Map<number, readonly string[]>();
        for (const { id, source } of model.sets) {
            const entries = source === 'manual' ? await this.#contents.entries(id) : [];
            elements.set(
                id,
                entries.filter(({ until }) => until === null).map(({ interval }) => formatInterval(interval))
            );
        }
        return toDocument(model, ({ id }) => elements.get(id) ?? []);
    }

    /** Takes a document into the draft, unless it is a dry run. @throws VALIDATION_FAILED 40001 */
    async write(
        document: FirewallDocument,
        mode: 'merge' | 'replace',
        isDryRun: boolean
    ): Promise<readonly PlannedStep[]> {
        const hasCountries = this.#ctx.settings.countrySource !== undefined;
        if (mode === 'merge') {
            await this.#requireRoom(document);
        }
        const { plan, sets } = await this.#draft.change((model, allot) => {
            const planned = planImport(document, mode, model, allot, hasCountries);
            return {
                model: isDryRun ? model : planned.model,
                result: { plan: planned.plan, sets: planned.model.sets }
            };
        });
        for (const { name, elements } of isDryRun ? [] : document.sets) {
            const set = sets.find((each) => each.name === name);
            if (set !== undefined && set.source === 'manual') {
                const known = new Set(elements.map((text) => formatInterval(parsePrefix(text))));
                const before = (await this.#contents.entries(set.id)).map(({ interval }) =>
                    formatInterval(interval)
                );
                const remove = mode === 'replace' ? before.filter((text) => !known.has(text)) : [];
                if (elements.length + remove.length > 0) {
                    await this.#lists.change(set.id, { add: elements, remove, seconds: null });
                }
            } else if (set !== undefined) {
                this.#lists.refreshSoon(set.id);
            }
        }
        return plan;
    }

    /** @throws VALIDATION_FAILED 40001 when the elements of a document, with those that are there, are too many */
    async #requireRoom({ sets }: FirewallDocument): Promise<void> {
        const there = (await this.#draft.model()).sets;
        const named = new Set(sets.map(({ name }) => name));
        let total = await this.#contents.total(
            there.filter(({ name }) => !named.has(name)).map(({ id }) => id)
        );
        for (const { name, elements } of sets) {
            const set = there.find((each) => each.name === name);
            const before = set === undefined ? [] : await this.#contents.entries(set.id);
            const after = new Set(before.map(({ interval }) => formatInterval(interval)));
            for (const text of elements) {
                const interval = readPrefix(text);
                after.add(interval === null ? text : formatInterval(interval));
            }
            total += after.size;
        }
        if (total > most.elements) {
            throw errors.invalid([tooManyElements('sets')]);
        }
    }
}
