/** Finds the sites that an engine refuses, when it does not take all of them together. */
import { EngineRejected } from '../port.ts';
import type { Site } from '../site.ts';
import type { Serving } from './served-state.ts';

/** A proof costs up to a second. */
const maxProofs = 60;

/**
 * Takes sites out until the rest is accepted. They stay out of the projection.
 * @returns the engine's message for each site that is out; null when the sites are not to blame, and then nothing changed
 * @throws EngineUnavailable when the engine gives no verdict, and then nothing changed
 */
export const isolate = async (
    serving: Serving,
    sites: readonly Site[]
): Promise<ReadonlyMap<number, string> | null> => {
    const all = serving.stage({ sites: sites.map(({ id }) => ({ id, site: null })) });
    const refused = new Map<number, string>();
    const undo: (() => void)[] = [() => all.undo()];
    let proofs = 0;

    const verdict = async (): Promise<string | null> => {
        proofs += 1;
        try {
            await serving.prove();
            return null;
        } catch (error) {
            if (error instanceof EngineRejected) {
                return error.message;
            }

            throw error;
        }
    };

    const accept = async (part: readonly Site[]): Promise<void> => {
        const staged = serving.stage({ sites: part.map((site) => ({ id: site.id, site })) });
        const message = await verdict().catch((error: unknown) => {
            staged.undo();
            throw error;
        });
        if (message === null) {
            undo.push(() => staged.undo());
            return;
        }

        staged.undo();
        if (part.length === 1 || proofs >= maxProofs) {
            for (const { id } of part) {
                refused.set(id, message);
            }

            return;
        }

        const middle = Math.ceil(part.length / 2);
        await accept(part.slice(0, middle));
        await accept(part.slice(middle));
    };

    const takeBack = (): void => {
        for (const back of undo.reverse()) {
            back();
        }
    };

    try {
        if (sites.length === 0 || (await verdict()) !== null) {
            takeBack();
            return null;
        }

        await accept(sites);
        return refused;
    } catch (error) {
        takeBack();
        throw error;
    }
};
