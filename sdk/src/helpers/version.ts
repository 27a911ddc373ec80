/** The version check of a change. */
import { errors } from '../plugin-errors.ts';

/**
 * Compares the version of an object with those that a client says it knows, as `request.ifMatch` and `payload.version`.
 * `null` and `undefined` say nothing, and `*` means any version.
 *
 * @throws VERSION_STALE 41200
 */
export function requireVersion(
    { version }: { readonly version: number },
    ...known: readonly (string | number | null | undefined)[]
): void {
    if (known.some((each) => each != null && each !== '*' && String(each) !== String(version))) {
        throw errors.stale(version);
    }
}
