/** Whether the links of an archive stay in it. */
import type { TarEntry } from './tar.ts';

/** As many links may follow each other; the kernel gives up after 40, too. */
const mostHops = 40;

/** The entries of an archive that stay: gathers them, and says which one does not. */
export class Inventory {
    readonly #links = new Map<string, string>();
    #bytes = 0;
    #files = 0;
    #bad: string | null = null;

    /** Bytes of all files. */
    get bytes(): number {
        return this.#bytes;
    }

    /** Number of entries that are no folders. */
    get files(): number {
        return this.#files;
    }

    /** Takes the next entry. */
    add({ path, kind, target, bytes }: TarEntry): void {
        const place = stepsOf(path);
        if (place === null || kind === 'other') {
            this.#bad ??= path;
        } else if (kind === 'link') {
            this.#links.set(place.join('/'), target);
        } else if (kind === 'hard-link' && stepsOf(target) === null) {
            this.#bad ??= path;
        }
        this.#bytes += bytes;
        this.#files += kind === 'folder' ? 0 : 1;
    }

    /** The first entry that leads out of the archive, or is neither file, folder nor link; null when all of them stay. */
    outside(): string | null {
        return this.#bad ?? [...this.#links.keys()].find((path) => !this.#stays(path)) ?? null;
    }

    /** Whether an entry of the archive is a link. */
    isLink(path: string): boolean {
        return this.#links.has(path);
    }

    /** Walks as the kernel would: each link on the way is followed where it stands, so that `..` counts from where it leads. */
    #stays(path: string): boolean {
        const rest = path.split('/');
        const at: string[] = [];
        let hops = 0;
        while (rest.length > 0) {
            const step = rest.shift() as string;
            if (step === '' || step === '.') {
                continue;
            }
            if (step === '..') {
                if (at.pop() === undefined) {
                    return false;
                }
                continue;
            }
            const target = this.#links.get([...at, step].join('/'));
            if (target === undefined) {
                at.push(step);
                continue;
            }
            hops += 1;
            if (target.startsWith('/') || hops > mostHops) {
                return false;
            }
            rest.unshift(...target.split('/'));
        }
        return true;
    }
}

/** The steps of a path in an archive; null for one that is absolute or climbs. */
function stepsOf(path: string): readonly string[] | null {
    const steps = path.split('/').filter((step) => step !== '' && step !== '.');
    return path.startsWith('/') || path.includes('\0') || steps.includes('..') ? null : steps;
}
