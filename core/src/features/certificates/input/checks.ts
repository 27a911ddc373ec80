/** Checks of a change before anything is done. */
import { invalid } from '../../../platform/errors.ts';

/** Refuses a name with line breaks. @throws VALIDATION_FAILED for a name that does not fit on one line */
export function checkName(name: string | undefined): void {
    if (name !== undefined && /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)) {
        throw invalid({
            path: 'name',
            message: 'name must not have line breaks or other control characters'
        });
    }
}
