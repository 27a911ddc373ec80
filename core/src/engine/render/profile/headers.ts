/** Changes to headers, in the engine's terms. */
import type { HeaderOperation } from '../../site.ts';
import type { Part } from '../compile/context.ts';
import { literal } from '../placeholder.ts';

/**
 * One set of operations with the same effect as the list in its order. The engine adds first, then sets, then deletes, so what several
 * operations do to one header is worked out here, and each header is in one place only.
 * @returns null when there is nothing to do
 */
export const headerOperations = (operations: readonly HeaderOperation[]): Part | null => {
    const effects = new Map<string, { readonly name: string; replace: boolean; values: string[] }>();
    for (const { op, name, value } of operations) {
        const key = name.toLowerCase();
        const effect = effects.get(key) ?? { name, replace: false, values: [] };
        effects.set(key, effect);
        if (op === 'add') {
            effect.values.push(literal(value));
        } else {
            effect.replace = true;
            effect.values = op === 'set' ? [literal(value)] : [];
        }
    }

    const add: Record<string, string[]> = {};
    const set: Record<string, string[]> = {};
    const remove: string[] = [];
    for (const { name, replace, values } of effects.values()) {
        if (values.length === 0) {
            remove.push(name);
        } else {
            (replace ? set : add)[name] = values;
        }
    }

    const result = {
        ...(Object.keys(add).length > 0 && { add }),
        ...(Object.keys(set).length > 0 && { set }),
        ...(remove.length > 0 && { delete: remove })
    };
    return Object.keys(result).length === 0 ? null : result;
};

/** A handler that changes the headers of the finished answer. */
export const responseHandler = (operations: Part, require?: Part): Part => ({
    handler: 'headers',
    response: { ...operations, deferred: true, ...(require !== undefined && { require }) }
});
