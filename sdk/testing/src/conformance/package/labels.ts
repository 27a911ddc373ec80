/** Fields that people fill in and that have no label: a page can only show their technical names. */
import type { RouteDocument } from '@portico/sdk/host';

import { type Finding, warningOf } from '../finding.ts';

/** The part of joi's `describe()` that is read here. */
interface Described {
    readonly flags?: Readonly<Record<string, unknown>>;
    readonly allow?: readonly unknown[];
    readonly metas?: readonly { readonly readOnly?: boolean; readonly ui?: { readonly widget?: string } }[];
    readonly keys?: Readonly<Record<string, Described>>;
    readonly patterns?: readonly { readonly rule?: Described }[];
    readonly items?: readonly Described[];
    readonly matches?: readonly Branch[];
}
interface Branch {
    readonly schema?: Described;
    readonly then?: Described;
    readonly otherwise?: Described;
    readonly switch?: readonly Branch[];
}

const mend =
    "Give each the words that people read: .label('Keep for'); where they do not say enough, .description('…')";

/** One warning for each route and for the settings, which names every field without a label. `settings`: joi's description of them. */
export function checkLabels(
    routes: readonly RouteDocument[],
    settings: object | undefined
): readonly Finding[] {
    return [
        ...routes.filter(isOnPages).flatMap(({ id, methods, path, schemas }) => {
            const places = [schemas.params, schemas.query, schemas.payload];
            return warn(`${methods.join('|')} ${path} (${id})`, places.flatMap(unlabelled));
        }),
        ...warn('settings', unlabelled(settings))
    ];
}

/** Sockets and raw routes have protocols of their own, and no page shows a hidden route. */
function isOnPages({ kind, ui }: RouteDocument): boolean {
    return kind !== 'socket' && kind !== 'http' && ui?.role !== 'hidden';
}

function warn(where: string, fields: readonly string[]): readonly Finding[] {
    const names = [...new Set(fields)].join(', ');
    return names === '' ? [] : [warningOf('labels', where, `Without a label: ${names}`, mend)];
}

/** Dotted paths; `*` stands for any index and any name. */
function unlabelled(description: object | undefined): readonly string[] {
    return description === undefined ? [] : walk(description, []);
}

function walk(described: Described, path: readonly string[]): readonly string[] {
    const { keys = {}, patterns = [], items = [], matches = [] } = described;
    return [
        ...Object.entries(keys)
            .filter(([, child]) => isEntered(child))
            .flatMap(([key, child]) => {
                const at = [...path, key];
                return [...(child.flags?.['label'] === undefined ? [at.join('.')] : []), ...walk(child, at)];
            }),
        ...patterns.flatMap(({ rule }) => (rule === undefined ? [] : walk(rule, [...path, '*']))),
        ...items.flatMap((item) => walk(item, [...path, '*'])),
        ...matches.flatMap(branches).flatMap((each) => walk(each, path))
    ];
}

function branches({ schema, then, otherwise, switch: cases = [] }: Branch): readonly Described[] {
    return [schema, then, otherwise, ...cases.flatMap(branches)].filter((each) => each !== undefined);
}

/** False for what is read only, hidden or forbidden, and for what has one possible value. */
function isEntered({ flags = {}, allow = [], metas = [] }: Described): boolean {
    return !(
        flags['presence'] === 'forbidden' ||
        flags['result'] === 'strip' ||
        (flags['only'] === true && allow.length === 1) ||
        metas.some(({ readOnly, ui }) => readOnly === true || ui?.widget === 'hidden')
    );
}
