/** A read-only root. Its `Files` refuse every change, whatever route asks for it. */
import type { Files } from '@portico/sdk';

import { fail } from '../errors.ts';

/** The same files, without a way to change them. Each change is READ_ONLY 40352. */
export function readOnlyFiles(files: Files, root: string): Files {
    const refuse = async (): Promise<never> => {
        throw fail.READ_ONLY({ root });
    };
    return {
        open: (path, flags = 'r', mode) => (flags === 'r' ? files.open(path, flags, mode) : refuse()),
        list: (path) => files.list(path),
        names: (path) => files.names(path),
        read: (path, most) => files.read(path, most),
        copyFile: refuse,
        stat: (path) => files.stat(path),
        readLink: (path) => files.readLink(path),
        space: () => files.space(),
        link: refuse,
        createFolder: refuse,
        move: refuse,
        remove: refuse,
        chmod: refuse,
        chown: refuse
    };
}
