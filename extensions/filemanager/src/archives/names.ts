/** Names inside an archive: hostile until proven plain. One bad name refuses the whole archive. */
import { failures } from '../errors.ts';
import { isReserved } from '../roots/path.ts';

const deepest = 100;
const longestSegment = 255;
const longestPath = 4096;
/** Bytes of all names together, which are kept to find duplicates. */
const mostNameBytes = 32 * 2 ** 20;

/** What an entry of an archive is taken for. */
export type EntryKind = 'file' | 'folder';

export class Names {
    readonly #kinds = new Map<string, EntryKind>();
    readonly #most: number;
    #bytes = 0;

    constructor(most: number) {
        this.#most = most;
    }

    /**
     * The path that an entry is written to; null for the top itself (`./`).
     *
     * @throws ARCHIVE_REFUSED 42251, ARCHIVE_TOO_LARGE 42252
     */
    accept(name: string, kind: EntryKind): string | null {
        const refuse = (why: string): never => {
            throw failures.ARCHIVE_REFUSED({ why, entry: name.slice(0, 300) });
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
            segments.length > deepest ||
            name.length > longestPath ||
            segments.some((segment) => Buffer.byteLength(segment) > longestSegment)
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
            this.#folder(path.slice(0, at), refuse);
        }
        this.#keep(path, kind);
        return path;
    }

    /** Folders in the order in which they were seen; parents come before their children. */
    folders(): string[] {
        return [...this.#kinds].filter(([, kind]) => kind === 'folder').map(([path]) => path);
    }

    #folder(path: string, refuse: (why: string) => never): void {
        const before = this.#kinds.get(path);
        if (before === 'file') {
            refuse('a name is a file and a folder');
        }
        if (before === undefined) {
            this.#keep(path, 'folder');
        }
    }

    #keep(path: string, kind: EntryKind): void {
        this.#kinds.set(path, kind);
        this.#bytes += path.length;
        if (this.#kinds.size > this.#most) {
            throw failures.ARCHIVE_TOO_LARGE({ limit: this.#most, unit: 'entries' });
        }
        if (this.#bytes > mostNameBytes) {
            throw failures.ARCHIVE_TOO_LARGE({ limit: mostNameBytes, unit: 'bytes of names' });
        }
    }
}
