/** The SDK that this panel runs with. */
import { readFile, realpath } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

import { CommandError } from '../../command/command-error.ts';

/** The SDK that this panel is installed with, which a new plugin is built against. */
export interface HostSdk {
    readonly folder: string;
    readonly version: string;
    /** Whether it is the workspace of the repository, which the npm registry does not have. */
    readonly isPrivate: boolean;
}

/** Finds the SDK of this panel. @throws CommandError when it is not installed */
export async function hostSdk(): Promise<HostSdk> {
    const path = findPackageJSON('@portico/sdk', import.meta.url);
    if (path === undefined) {
        throw new CommandError('@portico/sdk is not installed beside the panel');
    }
    const { version, private: isPrivate = false } = JSON.parse(await readFile(path, 'utf8')) as {
        version: string;
        private?: boolean;
    };
    return { folder: await realpath(dirname(path)), version, isPrivate };
}
