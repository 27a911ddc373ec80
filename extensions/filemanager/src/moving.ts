/** Moves in one step, and tells the one failure that is neither end's fault: that they lie on two file systems. */
import { isFailure, type Files } from '@portico/sdk';
import { failures, filesystem, isMissing } from './failures.ts';
import { parentOf } from './place.ts';

/** @throws OTHER_DEVICE 40951, CONFLICT 40900 when `to` is taken, NOT_FOUND 40400 */
export async function move(files: Files, from: string, to: string, options: { readonly replace?: boolean } = {}): Promise<void> {
    try {
        await filesystem(() => files.move(from, to, options));
    }
    catch (error) {
        throw await isOtherDevice(error, files, from, to) ? failures.OTHER_DEVICE({ from, to }) : error;
    }
}

/** The host answers NOT_FOUND for it; where both ends are there, nothing else can be meant. */
async function isOtherDevice(error: unknown, files: Files, from: string, to: string): Promise<boolean> {
    if ((error as NodeJS.ErrnoException).code === 'EXDEV') {
        return true;
    }
    return isMissing(error) && await Promise.all([files.stat(from), files.stat(parentOf(to))]).then(([, { type }]) => type === 'folder', () => false);
}

/** Tells whether {@link move} failed because its ends lie on two file systems. */
export function isAcross(error: unknown): boolean {
    return isFailure(error) && error.reason === 'OTHER_DEVICE';
}
