/** `ctx.files`: files below folders that an admin granted. */
import type { FileHandle } from 'node:fs/promises';

/** A file, folder or link below a granted root. */
export interface FileEntry {
    /** A file name is bytes. A byte that is no part of a UTF-8 character is the character U+EF00 + byte here (U+EF80 to U+EFFF), also when it is passed back. */
    readonly name: string;
    readonly type: 'file' | 'folder' | 'link' | 'other';
    /** Bytes. */
    readonly size: number;
    /** Bytes on the disk: less than `size` for a file with holes. */
    readonly allocated: number;
    /** Number of names of the same file; its bytes count once. */
    readonly links: number;
    /** The file system that it lies on, as a text to compare. */
    readonly device: string;
    /** Permission bits. */
    readonly mode: number;
    readonly uid: number;
    readonly gid: number;
    readonly modifiedAt: Date;
    /** Changes whenever the entry does. */
    readonly version: string;
}

/** A name in a folder, and what it is the name of. */
export type FileName = Pick<FileEntry, 'name' | 'type'>;

/**
 * Files below one granted root. Paths are relative (`a/b.txt`; `''` is the root). Each part of a path is opened below the descriptor of the part
 * before it, so no link, no `..` and no race leaves the root. Links are never followed: a path through a link is refused with NOT_FOUND 40400.
 * Where the root is a single file, `''` is that file: it can be opened, and its bits and owner changed.
 */
export interface Files {
    /** Opens a file. `wx` makes a new file and fails when there is one; `mode` is for new files, default 0o640. */
    open(path: string, flags?: 'r' | 'r+' | 'w' | 'wx' | 'a', mode?: number): Promise<FileHandle>;
    /** What is in a folder, without the folders below it. */
    list(path: string): Promise<readonly FileEntry[]>;
    /** The names in a folder, without a look at each entry: many times faster than `list`. */
    names(path: string): Promise<readonly FileName[]>;
    /**
     * Reads a file from its beginning up to `most` bytes (at most 1 MiB). The entry is that of the file whose bytes were read.
     *
     * This, `names` and `copyFile` are for many small files: calls that are made together (`Promise.all`) are done together, in a thread,
     * and need a fraction of the time that an open file for each of them needs.
     */
    read(path: string, most: number): Promise<{ readonly entry: FileEntry; readonly bytes: Uint8Array }>;
    /**
     * Copies a file of up to `most` bytes (at most 1 MiB) to a free name, also from another granted root. A larger one is left alone. The copy
     * has the bits of the source without set-id bits, and where the panel may give files away, the owner. Resolves with the entry of the source.
     *
     * @throws CONFLICT 40900 for a taken name
     */
    copyFile(
        path: string,
        from: { readonly root: string; readonly path: string },
        options: { readonly most: number; readonly owner?: { readonly uid: number; readonly gid: number } }
    ): Promise<{ readonly entry: FileEntry; readonly copied: boolean }>;
    /** The entry itself; of a link the link, not its target. */
    stat(path: string): Promise<FileEntry>;
    /** Where a link points to, as text. */
    readLink(path: string): Promise<string>;
    /**
     * Makes a link at a free name. `symbolic`: `target` is a text relative to the link's folder that does not climb above the root; links
     * on its way are not looked at. `hard`: `target` is the path of a file below this root, which gets a second name.
     *
     * @throws VALIDATION_FAILED 40001 for a target that is absolute or climbs above the root; CONFLICT 40900 for a taken name;
     * NOT_FOUND 40400 when a hard link's target is no file
     */
    link(path: string, target: string, kind: 'symbolic' | 'hard'): Promise<void>;
    /** Bytes of the file system that the root lies on: all, and those that a program without root's reserve can still use. */
    space(): Promise<{ readonly total: number; readonly available: number }>;
    /**
     * Makes a folder. With `parents` the folders on the way are made too, and one that is there already is kept as it is; the path `''` then makes the
     * root itself, in a folder that is there. @throws CONFLICT 40900 for a taken name
     */
    createFolder(
        path: string,
        options?: { readonly mode?: number; readonly parents?: boolean }
    ): Promise<void>;
    /** Moves or renames an entry. It replaces an existing file at `to` only with `replace`. */
    move(from: string, to: string, options?: { readonly replace?: boolean }): Promise<void>;
    /** Removes a folder with its content only with `recursive`. */
    remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
    /** Changes permission bits. */
    chmod(path: string, mode: number): Promise<void>;
    /** Changes owner and group. */
    chown(path: string, uid: number, gid: number): Promise<void>;
}
