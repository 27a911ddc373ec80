/** What became of each source of a run. */
import type { Document } from '../restic/output.ts';
import type { SourceResult, StagedSource } from './sources.ts';

/** Files and bytes of one source. */
export interface Count {
    readonly files: number;
    readonly bytes: number;
}

/** Follows what restic says of each file, and knows to which source it belongs. */
export class SourceTally {
    readonly #staged: readonly StagedSource[];
    readonly #added = new Map<StagedSource, number>();
    readonly #failed = new Map<StagedSource, number>();

    constructor(staged: readonly StagedSource[]) {
        this.#staged = staged;
    }

    /** Takes a document of `restic backup`. */
    take({ message_type: type, item, data_size: size }: Document): void {
        if (type === 'verbose_status' && typeof size === 'number') {
            this.#count(this.#added, item, size);
        }
    }

    /** Takes what restic said on standard error: JSON with the path that it could not read. Returns how many lines that were. */
    takeErrors(said: string): number {
        const items = [...said.matchAll(/"item":("(?:[^"\\]|\\.)*")/g)].map(
            ([, text]) => JSON.parse(text ?? '""') as string
        );
        items.forEach((item) => this.#count(this.#failed, item, 1));
        return items.length;
    }

    /** @param added - bytes that are new because of all sources */
    results(counts: ReadonlyMap<StagedSource, Count> | null, added: number): readonly SourceResult[] {
        const present = this.#staged.filter(({ message }) => message === null);
        return this.#staged.map((each) => {
            const failed = this.#failed.get(each) ?? 0;
            const message = each.message ?? (failed > 0 ? `${failed} entries could not be read` : null);
            return {
                source: each.source,
                state: message === null ? 'succeeded' : 'failed',
                message,
                files: counts?.get(each)?.files ?? 0,
                bytes: counts?.get(each)?.bytes ?? 0,
                addedBytes:
                    each.message !== null ? 0 : present.length === 1 ? added : (this.#added.get(each) ?? 0)
            };
        });
    }

    #count(into: Map<StagedSource, number>, item: unknown, by: number): void {
        const path = String(item);
        const owner = this.#staged.find(({ paths }) =>
            paths.some((each) => path === each || path.startsWith(`${each}/`))
        );
        if (owner !== undefined) {
            into.set(owner, (into.get(owner) ?? 0) + by);
        }
    }
}
