/** Counts what is below a folder, as `du` does: a file with several names counts once. */
import { type FileEntry, type Files, joi, type Value } from '@portico/sdk';

import { filesystem } from './filesystem.ts';
import { walk } from './tree.ts';

const bytes = (label: string) => joi.number().integer().required().label(label).unit('byte');
const count = (label: string) => joi.number().integer().required().label(label);

/** The schema of a size. */
export const sizeSchema = joi.object({
    bytes: bytes('Size').description('Of all files; a file with several names counts once'),
    allocated: bytes('On the disk').description(
        'What files, folders and links take on the disk: less than the size where files have holes'
    ),
    files: count('Files'),
    folders: count('Folders').description('The folder itself is not counted'),
    largest: joi
        .array()
        .items(
            joi.object({
                path: joi.string().allow('').required().label('Path').description('Below the root'),
                size: bytes('Size')
            })
        )
        .required()
        .label('Largest files')
        .description('At most ten, the largest first')
});
/** A size as the API answers it. */
export type TreeSize = Value<typeof sizeSchema>;

const mostLargest = 10;

/** Adds up entries. */
class SizeCount {
    readonly #linked = new Set<string>();
    #largest: { readonly path: string; readonly size: number }[] = [];
    #bytes = 0;
    #allocated = 0;
    #files = 0;
    #folders = 0;

    get total(): TreeSize {
        return {
            bytes: this.#bytes,
            allocated: this.#allocated,
            files: this.#files,
            folders: this.#folders,
            largest: this.#largest
        };
    }

    add(path: string, { type, size, allocated, links, device, version }: FileEntry): void {
        if (type === 'folder') {
            this.#folders += 1;
        } else if (type === 'file') {
            this.#files += 1;
            if (links > 1) {
                // All names of a file have its version.
                const key = `${device} ${version}`;
                if (this.#linked.has(key)) {
                    return;
                }
                this.#linked.add(key);
            }
            this.#bytes += size;
            this.#rank(path, size);
        }
        this.#allocated += allocated;
    }

    #rank(path: string, size: number): void {
        if (this.#largest.length < mostLargest || size > (this.#largest.at(-1)?.size ?? 0)) {
            this.#largest = [...this.#largest, { path, size }]
                .sort((one, two) => two.size - one.size)
                .slice(0, mostLargest);
        }
    }
}

/** What is asked of a count. */
export interface SizeOptions {
    readonly signal: AbortSignal;
    /** Entries after which it ends without a result. */
    readonly most: number;
    /** Called after each entry. */
    step?(): void;
    /** Whether a path counts, with what is below it; default: all but the file manager's own folders. */
    includes?(path: string): boolean;
}

/** Counts a file, or what is below a folder. Resolves with null when there is more than `most`. @throws NOT_FOUND 40400 */
export async function sizeOf(
    files: Files,
    path: string,
    { signal, most, step, includes }: SizeOptions
): Promise<TreeSize | null> {
    const sum = new SizeCount();
    const top = await filesystem(() => files.stat(path));
    if (top.type !== 'folder') {
        sum.add(path, top);
        return sum.total;
    }
    let entries = 0;
    for await (const found of walk(files, path, signal, includes)) {
        entries += 1;
        if (entries > most) {
            return null;
        }
        sum.add(found.path, found.entry);
        step?.();
    }
    return sum.total;
}
