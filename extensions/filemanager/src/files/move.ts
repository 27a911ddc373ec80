/** Moves entries in one step. */
import { type Files, isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';
import { filesystem } from './filesystem.ts';

/** Moves within one root. @throws OTHER_DEVICE 40951 between two file systems, CONFLICT 40900 when `to` is taken, NOT_FOUND 40400 */
export async function move(
    files: Files,
    from: string,
    to: string,
    options: { readonly replace?: boolean } = {}
): Promise<void> {
    try {
        await filesystem(() => files.move(from, to, options));
    } catch (error) {
        throw (error as NodeJS.ErrnoException).code === 'EXDEV' ? fail.OTHER_DEVICE({ from, to }) : error;
    }
}

/** Tells whether {@link move} failed because both ends lie on different file systems. */
export function isOtherDevice(error: unknown): boolean {
    return isFailure(error) && error.reason === 'OTHER_DEVICE';
}
