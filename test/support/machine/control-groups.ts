import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { findHierarchies } from '../../../core/src/platform/process/control-group/hierarchy.ts';

/** Why the tests cannot make control groups with limits on this machine; undefined where they can. */
export function groupsMissing(): string | undefined {
    const why = findHierarchies().map(({ folders }) => {
        try {
            for (const folder of new Set(Object.values(folders))) {
                const probe = join(folder, `portico-probe-${process.pid}`);
                mkdirSync(probe);
                rmdirSync(probe);
            }
            return Object.keys(folders).length === 4 ? null : 'a controller is absent';
        } catch (error) {
            return (error as Error).message;
        }
    });
    return why.includes(null) ? undefined : `no control group is writable: ${why[0] ?? 'there are none'}`;
}
