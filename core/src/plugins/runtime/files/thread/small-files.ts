/** Collects the work on small files that is asked for in one turn, so that one look at the grant and one message to the thread serve all of it. */
import { failureOf } from '../failure.ts';
import type { GrantedRoot } from '../granted-root.ts';
import type { FilesThread } from './files-thread.ts';
import type { HeldRoot, Operation, Outcome, Outcomes } from './operations.ts';

/** What one message to the thread may hold, so that others wait for milliseconds only. */
const mostAtOnce = { operations: 256, bytes: 16 * 2 ** 20 } as const;

/** An outcome with the bytes that belong to it. */
interface Done {
    readonly outcome: Outcome;
    readonly bytes: Uint8Array;
}

/** What was asked for in one turn, with copies from the same root. */
interface Asked {
    readonly operations: Operation[];
    readonly done: Promise<readonly Done[]>;
}

/** The work on small files below one root. */
export class SmallFiles {
    readonly #root: GrantedRoot;
    readonly #thread: FilesThread;
    /** Opens the roots that copies come from. */
    readonly #granted: (root: string) => GrantedRoot;
    readonly #asked = new Map<string | null, Asked>();

    constructor(root: GrantedRoot, thread: FilesThread, granted: (root: string) => GrantedRoot) {
        this.#root = root;
        this.#thread = thread;
        this.#granted = granted;
    }

    /**
     * Does an operation.
     *
     * @param source - the root that a copy comes from
     * @throws the failure that a call for this path alone would give
     */
    async perform<Kind extends keyof Outcomes>(
        operation: Extract<Operation, { readonly kind: Kind }>,
        path: string,
        source: string | null = null
    ): Promise<Outcomes[Kind] & { readonly bytes: Uint8Array }> {
        const { operations, done } = this.#askedFrom(source);
        const index = operations.push(operation) - 1;
        const { outcome, bytes } = (await done)[index] as Done;
        if ('failed' in outcome) {
            const code = outcome.failed;
            throw failureOf(Object.assign(new Error(`${code}: ${path}`), { code }), path);
        }
        return { ...(outcome as Outcomes[Kind]), bytes };
    }

    #askedFrom(source: string | null): Asked {
        const known = this.#asked.get(source);
        if (known !== undefined) {
            return known;
        }
        const operations: Operation[] = [];
        const done = Promise.resolve().then(() => {
            this.#asked.delete(source);
            return this.#run(operations, source);
        });
        const asked = { operations, done };
        this.#asked.set(source, asked);
        return asked;
    }

    #run(operations: readonly Operation[], source: string | null): Promise<readonly Done[]> {
        return this.#root.held(async (root) => {
            const send = async (from: HeldRoot | null): Promise<readonly Done[]> => {
                const done: Done[] = [];
                for (const part of parts(operations)) {
                    const reply = await this.#thread.perform({ root, source: from, operations: part });
                    const bytes = new Uint8Array(reply.bytes);
                    done.push(...reply.outcomes.map((outcome) => ({ outcome, bytes })));
                }
                return done;
            };
            return source === null ? send(null) : this.#granted(source).held(send);
        });
    }
}

/** Operations in the order that they were asked for, in parts of bounded work. */
function* parts(operations: readonly Operation[]): Generator<readonly Operation[]> {
    let [start, bytes] = [0, 0];
    for (const [index, { most }] of operations.entries()) {
        if (index > start && (index - start === mostAtOnce.operations || bytes + most > mostAtOnce.bytes)) {
            yield operations.slice(start, index);
            [start, bytes] = [index, 0];
        }
        bytes += most;
    }
    yield operations.slice(start);
}
