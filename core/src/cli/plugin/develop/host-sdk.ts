/** The SDK that this panel runs with. */
import { readFile, realpath } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

import { Complaint } from '../../command/command-error.ts';

export interface HostSdk {
    readonly folder: string;
    readonly version: string;
    /** It is a workspace of the repository, which no registry has. */
    readonly isPrivate: boolean;
}

/** @throws Complaint when it is not installed */
export async function hostSdk(): Promise<HostSdk> {
    const path = findPackageJSON('@portico/sdk', import.meta.url);
    if (path === undefined) {
        throw new Complaint('@portico/sdk is not installed beside the panel');
    }
    const { version, private: isPrivate = false } = JSON.parse(await readFile(path, 'utf8')) as {
        version: string;
        private?: boolean;
    };
    return { folder: await realpath(dirname(path)), version, isPrivate };
}
