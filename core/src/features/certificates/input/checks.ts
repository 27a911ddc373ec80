/** Checks of a change before anything is done. */
import { fail, invalid } from '../../../platform/errors.ts';
import type { CertificateRow } from '../entities.ts';

/** Refuses a name with line breaks. @throws VALIDATION_FAILED for a name that does not fit on one line */
export function checkName(name: string | undefined): void {
    if (name !== undefined && /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)) {
        throw invalid({
            path: 'name',
            message: 'name must not have line breaks or other control characters'
        });
    }
}

/** Refuses a change of another version. @throws VERSION_STALE when the caller means another version */
export function checkVersion(row: CertificateRow, ifMatch: string | null, sent: number | undefined): void {
    if (
        (ifMatch !== null && ifMatch !== '*' && ifMatch !== String(row.version)) ||
        (sent !== undefined && sent !== row.version)
    ) {
        throw fail.VERSION_STALE({ version: row.version });
    }
}
