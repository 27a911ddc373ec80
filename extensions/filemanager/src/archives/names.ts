/** Checks names inside an archive, which may be hostile. One bad name refuses the whole archive. */
import { fail } from '../errors.ts';
import { isReserved } from '../roots/path.ts';

const maxDepth = 100;
const maxSegmentBytes = 255;
const maxPathLength = 4096;
/** Length of all names together, which stay in memory to find duplicates. */
const maxNameBytes = 32 * 2 ** 20;

/** What an entry of an archive becomes. */
export type EntryKind = 'file' | 'folder';

/** The names of one archive, in the order in which they were read. */
export class EntryNames {
    readonly #kinds = new Map<string, EntryKind>();
    readonly #maxEntries: number;
    #bytes = 0;

    constructor(maxEntries: number) {
        this.#maxEntries = maxEntries;
    }

    /**
     * The path that an entry is written to; null for the top itself (`./`).
     *
     * @throws ARCHIVE_REFUSED 42251, ARCHIVE_TOO_LARGE 42252
     */
    accept(name: string, kind: EntryKind): string | null {
        const refuse = (why: string): never => {
            throw fail.ARCHIVE_REFUSED({ why, entry: name.slice(0, 300) });
        };
        if (name.startsWith('/')) {
            refuse('a name is absolute');
        }
        if (name.includes('\0')) {
            refuse('a name has a NUL character');
        }
        if (name.includes('\uFFFD')) {
            refuse('a name is not UTF-8');
        }
        const segments = name.split('/').filter((segment) => segment !== '' && segment !== '.');
        if (segments.includes('..')) {
            refuse('a name leads out of the archive');
        }
        if (segments.some(isReserved)) {
            refuse("a name is one of the file manager's own");
        }
        if (
            segments.length > maxDepth ||
            name.length > maxPathLength ||
            segments.some((segment) => Buffer.byteLength(segment) > maxSegmentBytes)
        ) {
            refuse('a name is too long or too deep');
        }
        const path = segments.join('/');
        if (path === '') {
            return kind === 'folder' ? null : refuse('a file has no name');
        }
        const before = this.#kinds.get(path);
        if (before === 'file' || (before !== undefined && kind === 'file')) {
            refuse('a name is there twice');
        }
        for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
            this.#addFolder(path.slice(0, at), refuse);
        }
        this.#add(path, kind);
        return path;
    }

    /** All folders, also those that only paths of files named; parents come before their children. */
    folders(): string[] {
        return [...this.#kinds].filter(([, kind]) => kind === 'folder').map(([path]) => path);
    }

    #addFolder(path: string, refuse: (why: string) => never): void {
        const before = this.#kinds.get(path);
        if (before === 'file') {
            refuse('a name is a file and a folder');
        }
        if (before === undefined) {
            this.#add(path, 'folder');
        }
    }

    #add(path: string, kind: EntryKind): void {
        this.#kinds.set(path, kind);
        this.#bytes += path.length;
        if (this.#kinds.size > this.#maxEntries) {
            throw fail.ARCHIVE_TOO_LARGE({ limit: this.#maxEntries, unit: 'entries' });
        }
        if (this.#bytes > maxNameBytes) {
            throw fail.ARCHIVE_TOO_LARGE({ limit: maxNameBytes, unit: 'bytes of names' });
        }
    }
}
