/** The own data of plugins in a document, beside their settings: plain JSON of limited size. One plugin's failure affects no other. */
import { isDeepStrictEqual } from 'node:util';

import { type ExportItem, joi, messageOf, type Outcome, type RestoredItem } from '@portico/sdk';

import type { Reason } from '../../../platform/errors.ts';
import { joiOf } from '../../../platform/validation.ts';
import type { PluginHooks } from '../ports.ts';

/** One plugin's part of a document. It goes back only to the same package. */
export interface Contribution {
    readonly package: string;
    /** The version that gave it. */
    readonly version: string;
    readonly items: readonly ExportItem[];
}

/** As long as no plugin runs. */
export const noHooks: PluginHooks = { givers: () => [], give: () => nothing(), restore: () => nothing() };

/** Of one plugin, as JSON: settings of a tool and its list of jobs, not its measurements. */
const mostBytes = 8 * 1024 * 1024;
/** Of all plugins together: an import takes 256 MiB. */
const mostOfAll = 64 * 1024 * 1024;
const mostItems = 1_000;
const longestMessage = 500;
const mostOmitted = 20;
/** The reason of an error that no table of the plugin has. */
const internal: Reason = 'INTERNAL';

/** A plugin whose data is not in a document, with the reason as words that follow its name. */
export interface LeftOut {
    readonly name: string;
    readonly why: string;
}

/** The data that plugins gave, and the data that is missing. */
export interface Given {
    /** By plugin. */
    readonly given: ReadonlyMap<string, Contribution>;
    /** Data that a complete export must hold. */
    readonly leftOut: readonly LeftOut[];
    /** Data that no export holds, because a plugin says so or takes no part in exports. */
    readonly neverGiven: readonly LeftOut[];
}

/** Asks every plugin that has data of its own. The failure of one plugin is noted and does not stop the others. */
export async function collectContributions(
    hooks: PluginHooks,
    packageOf: (plugin: string) => string | null,
    signal: AbortSignal
): Promise<Given> {
    const outcomes = new Map<string, Outcome<unknown>[]>();
    for await (const outcome of hooks.givers().length === 0
        ? nothing()
        : hooks.give({ maxBytes: mostBytes }, signal)) {
        outcomes.set(outcome.plugin, [...(outcomes.get(outcome.plugin) ?? []), outcome]);
    }
    const given = new Map<string, Contribution>();
    const leftOut: LeftOut[] = [];
    const neverGiven: LeftOut[] = [];
    let total = 0;
    for (const [name, all] of [...outcomes].sort(([one], [two]) => (one < two ? -1 : 1))) {
        try {
            const { items, omitted } = splitItems(all.flatMap(itemsOf));
            const packageName = packageOf(name);
            const bytes = checked(items);
            if (total + bytes > mostOfAll) {
                throw new Error(
                    `the data of all plugins together is larger than ${mostOfAll / 1024 / 1024} MiB`
                );
            }
            if (items.length > 0 && packageName !== null) {
                total += bytes;
                neverGiven.push(...omitted.map((why) => ({ name, why: `left out: ${shortened(why)}` })));
                given.set(name, { package: packageName, version: all[0]?.version ?? '', items });
            }
        } catch (error) {
            leftOut.push({ name, why: shortened(messageOf(error)) });
        }
    }
    return { given, leftOut, neverGiven };
}

/** Removes the notes of a plugin on what its items lack: they are for people, and are not given back to the plugin. */
function splitItems(given: readonly ExportItem[]): {
    readonly items: readonly ExportItem[];
    readonly omitted: readonly string[];
} {
    const items: ExportItem[] = [];
    const omitted: string[] = [];
    for (const item of given) {
        if (typeof item !== 'object' || item === null) {
            throw new Error('it gave an item that is no object');
        }
        const { leftOut = [], ...rest } = item;
        if (!isTextList(leftOut)) {
            throw new Error('it gave a leftOut that is no list of texts');
        }
        items.push(rest);
        omitted.push(...leftOut);
    }
    return { items, omitted: omitted.slice(0, mostOmitted) };
}

function isTextList(value: unknown): value is readonly string[] {
    return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

const contribution = joi.object({
    package: joi.string().max(214).required(),
    version: joi.string().max(64).required(),
    items: joi
        .array()
        .items(joi.object({ name: joi.string().min(1).max(200).required(), data: joi.any().required() }))
        .min(1)
        .max(mostItems)
        .unique('name')
        .required()
});

/** Reads a plugin's part of a document; null when it is damaged. */
export function readContribution(value: unknown): Contribution | null {
    const { error } = joiOf(contribution).required().validate(value, { convert: false });
    return error === undefined ? (value as Contribution) : null;
}

/** How a plugin took its data back, according to the answers of its taps. */
export function judgeRestore(outcomes: readonly Outcome<unknown>[]): {
    readonly ok: boolean;
    readonly notes: readonly string[];
} {
    if (outcomes.length === 0) {
        return { ok: false, notes: ['it takes no data back'] };
    }
    const notes = outcomes.flatMap((outcome): readonly string[] => {
        if (!outcome.ok) {
            return [whyOf(outcome)];
        }
        const answer = outcome.result ?? [];
        if (!Array.isArray(answer) || !answer.every(isRestored)) {
            return ['it did not say what became of its data'];
        }
        return answer
            .filter(({ ok }) => !ok)
            .map(({ item, message = 'it was not taken' }) => `${item}: ${message}`);
    });
    return { ok: notes.length === 0, notes: notes.slice(0, 20).map(shortened) };
}

function itemsOf(outcome: Outcome<unknown>): readonly ExportItem[] {
    if (!outcome.ok) {
        throw new Error(whyOf(outcome));
    }
    if (outcome.result !== undefined && outcome.result !== null && !Array.isArray(outcome.result)) {
        throw new Error('it gave no list of items');
    }
    return (outcome.result ?? []) as readonly ExportItem[];
}

/** Bytes as JSON. @throws Error for what is no plain JSON, or too much of it */
function checked(items: readonly ExportItem[]): number {
    if (items.length === 0) {
        return 0;
    }
    const text = JSON.stringify(items);
    const bytes = Buffer.byteLength(text);
    if (bytes > mostBytes) {
        throw new Error(`it is larger than ${mostBytes / 1024 / 1024} MiB`);
    }
    if (!isDeepStrictEqual(JSON.parse(text), items)) {
        throw new Error('it is not plain JSON');
    }
    if (readContribution({ package: 'x', version: 'x', items }) === null) {
        throw new Error(
            `it gave no list of at most ${mostItems} items, each with a name of its own and data`
        );
    }
    return bytes;
}

function isRestored(value: unknown): value is RestoredItem {
    const { item, ok, message } = (
        typeof value === 'object' && value !== null ? value : {}
    ) as Partial<RestoredItem>;
    return (
        typeof item === 'string' &&
        typeof ok === 'boolean' &&
        (message === undefined || typeof message === 'string')
    );
}

/** Internal errors of a plugin concern its author, so the note only says that there was one. */
function whyOf({ reason, message }: { readonly reason: string; readonly message: string }): string {
    return reason === internal ? 'it failed; the log says why' : message;
}

function shortened(text: string): string {
    return text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text;
}

async function* nothing(): AsyncGenerator<never> {}
