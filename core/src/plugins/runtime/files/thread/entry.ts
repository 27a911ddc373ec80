/** Entries as plugins see them, made of what the kernel says. */
import type { BigIntStats } from 'node:fs';

import type { FileEntry } from '@portico/sdk';

/** The unit of `stat.blocks`, whatever the file system's own blocks are. */
const blockBytes = 512n;

/** What tells the kind of an entry: its details, or its line in a folder. */
interface Kind {
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
}

/** The kind of an entry. */
export function typeOf(kind: Kind): FileEntry['type'] {
    return kind.isFile() ? 'file' : kind.isDirectory() ? 'folder' : kind.isSymbolicLink() ? 'link' : 'other';
}

/** An entry of a folder. */
export function entryOf(name: string, stat: BigIntStats): FileEntry {
    return {
        name,
        type: typeOf(stat),
        size: Number(stat.size),
        allocated: Number(stat.blocks * blockBytes),
        links: Number(stat.nlink),
        device: String(stat.dev),
        mode: Number(stat.mode & 0o7777n),
        uid: Number(stat.uid),
        gid: Number(stat.gid),
        modifiedAt: new Date(Number(stat.mtimeMs)),
        version: [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs]
            .map((part) => part.toString(36))
            .join('-')
    };
}
