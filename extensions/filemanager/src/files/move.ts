/** Moves in one step, and names the one failure that is neither end's fault: that they lie on two file systems. */
import { type Files, isFailure } from '@portico/sdk';

import { failures, filesystem } from '../errors.ts';

/** @throws OTHER_DEVICE 40951, CONFLICT 40900 when `to` is taken, NOT_FOUND 40400 */
export async function move(
    files: Files,
    from: string,
    to: string,
    options: { readonly replace?: boolean } = {}
): Promise<void> {
    try {
        await filesystem(() => files.move(from, to, options));
    } catch (error) {
        throw (error as NodeJS.ErrnoException).code === 'EXDEV' ? failures.OTHER_DEVICE({ from, to }) : error;
    }
}

/** Tells whether {@link move} failed because its ends lie on two file systems. */
export function isAcross(error: unknown): boolean {
    return isFailure(error) && error.reason === 'OTHER_DEVICE';
}
