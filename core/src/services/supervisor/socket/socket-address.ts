/** Where the supervisor's socket is. */
import { openSync } from 'node:fs';

import { socketName } from './protocol.ts';

/** Path of the socket through a descriptor of its folder, which stays open. So the path is short, whatever the folder is called: the kernel takes 107 bytes. */
export function socketAddress(folder: string): { readonly path: string; readonly descriptor: number } {
    const descriptor = openSync(folder, 'r');
    return { path: `/proc/self/fd/${descriptor}/${socketName}`, descriptor };
}
