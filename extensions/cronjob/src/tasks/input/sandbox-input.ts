/** The sandbox of a task: its field in bodies, and the checks beyond the schema. */
import { normalize } from 'node:path';

import { joi } from '@portico/sdk';

/** What a sandboxed program may do. */
export interface Sandbox {
    /** Whether it has the machine's network; otherwise it has none. */
    readonly network: boolean;
    /** Folders that it may change; it sees everything else read-only. */
    readonly writable: readonly string[];
}

/** The field `sandbox` of a task: what its programs may reach. */
export const sandboxField = joi
    .object({
        network: joi.boolean().default(false).label('Network').description('Otherwise it has none'),
        writable: joi
            .array()
            .items(
                joi
                    .string()
                    .pattern(/^\/[^\0]*$/, 'absolute path')
                    .max(4_096)
            )
            .unique()
            .max(50)
            .default([])
            .label('Writable folders')
            .description("Outside the panel's own; everything else is read-only")
            .meta({ ui: { widget: 'lines' } })
    })
    .allow(null)
    .label('Sandbox')
    .description(
        'It sees the system read-only without the folders of the panel, an empty /tmp and home, no other processes, and no network; null: none'
    );

/** What is wrong with a folder that a sandbox could write to; null for nothing. @param own - folders of the panel */
export function problemOfWritable(folder: string, own: readonly string[]): string | null {
    const path = normalize(`${folder}/`);
    if (folder.split('/').includes('..')) {
        return 'is a path without ..';
    }
    return own.some((each) => path.startsWith(`${each}/`) || `${each}/`.startsWith(path))
        ? 'is a folder of the panel, or has one in it'
        : null;
}
