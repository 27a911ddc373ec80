/** Runs the taps of a plugin in its guest runtime. */
import { LentSignal } from '../asked.ts';
import { plainCopy } from '../plain.ts';
import type { Guest } from '../protocol.ts';
import type { GuestTap } from './registration.ts';

/** Runs one tap. Its result is a plain copy. */
export async function answerTap(
    found: GuestTap | undefined,
    input: Parameters<Guest['tap']>[0]
): ReturnType<Guest['tap']> {
    const result = await found?.tap(input.payload, new LentSignal(input));
    return {
        result:
            result === undefined
                ? undefined
                : plainCopy(result, `the result of a tap of ${found?.hook ?? input.tap}`)
    };
}

/** The folder that a hook lends to its taps; null for every other hook. */
export function lentFolder(hook: string | undefined, payload: unknown): string | null {
    return hook === 'backup.collect' || hook === 'backup.restore'
        ? (payload as { readonly folder: string }).folder
        : null;
}
