/** What differs between two pieces of plain data, field by field. */
import { isDeepStrictEqual } from 'node:util';

import type { PlannedChange } from '@portico/sdk';
import { isFields } from '@portico/sdk/host';

const deepest = 6;

/** Lists are compared whole. Paths are dotted. */
export function differences(before: unknown, after: unknown, path: readonly string[] = []): PlannedChange[] {
    if (isDeepStrictEqual(before, after)) {
        return [];
    }
    if (!isFields(before) || !isFields(after) || path.length >= deepest) {
        return [
            {
                path: path.join('.'),
                ...(before === undefined ? {} : { before }),
                ...(after === undefined ? {} : { after })
            }
        ];
    }
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
        differences(before[key], after[key], [...path, key])
    );
}
