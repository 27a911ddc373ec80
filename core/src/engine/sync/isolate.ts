/** Finds the sites that an engine refuses when it does not take all of them together. */
import { EngineRejected } from '../port.ts';
import type { Site } from '../site.ts';
import type { ServedState } from './served-state.ts';

/** One proof takes up to a second. */
const maxProofs = 60;

/**
 * Takes sites out until the engine accepts the rest. The refused sites stay out of the projection.
 * @returns the engine's message for each site that is out; null when the sites are not the cause, and then nothing changed
 * @throws EngineUnavailable when the engine gives no verdict, and then nothing changed
 */
export const isolate = (
    served: ServedState,
    sites: readonly Site[]
): Promise<ReadonlyMap<number, string> | null> => new Isolation(served).run(sites);

class Isolation {
    readonly #served: ServedState;
    readonly #refused = new Map<number, string>();
    readonly #undo: (() => void)[] = [];
    #proofs = 0;

    constructor(served: ServedState) {
        this.#served = served;
    }

    async run(sites: readonly Site[]): Promise<ReadonlyMap<number, string> | null> {
        const without = this.#served.stage({ sites: sites.map(({ id }) => ({ id, site: null })) });
        this.#undo.push(() => without.undo());
        try {
            if (sites.length === 0 || (await this.#verdict()) !== null) {
                this.#undoAll();
                return null;
            }

            await this.#accept(sites);
            return this.#refused;
        } catch (error) {
            this.#undoAll();
            throw error;
        }
    }

    /** The engine's message when it refuses what is staged; null when it accepts it. */
    async #verdict(): Promise<string | null> {
        this.#proofs += 1;
        try {
            await this.#served.prove();
            return null;
        } catch (error) {
            if (error instanceof EngineRejected) {
                return error.message;
            }

            throw error;
        }
    }

    /** Puts sites back in: all of them, or each half on its own, down to single sites. */
    async #accept(part: readonly Site[]): Promise<void> {
        const staged = this.#served.stage({ sites: part.map((site) => ({ id: site.id, site })) });
        const message = await this.#verdict().catch((error: unknown) => {
            staged.undo();
            throw error;
        });
        if (message === null) {
            this.#undo.push(() => staged.undo());
            return;
        }

        staged.undo();
        if (part.length === 1 || this.#proofs >= maxProofs) {
            for (const { id } of part) {
                this.#refused.set(id, message);
            }

            return;
        }

        const middle = Math.ceil(part.length / 2);
        await this.#accept(part.slice(0, middle));
        await this.#accept(part.slice(middle));
    }

    #undoAll(): void {
        for (const undo of this.#undo.reverse()) {
            undo();
        }
    }
}
