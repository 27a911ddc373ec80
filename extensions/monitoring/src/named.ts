/** What rules, checks, silences and exports share: versions, names that only one may have, and problems of an import. */
import { type Db, errors, isFailure } from '@portico/sdk';
import { type EntityManager, UniqueConstraintViolationException } from '@portico/sdk/db';

/** Writes what has a name that only one row may have. @throws CONFLICT 40900 when it is taken */
export async function writeNamed<T>(db: Db, work: (em: EntityManager) => Promise<T>): Promise<T> {
    try {
        return await db.write(work);
    } catch (error) {
        if (error instanceof UniqueConstraintViolationException) {
            throw errors.conflict('name');
        }
        throw error;
    }
}

/**
 * Refuses a change of a row that is newer than what the caller saw.
 *
 * @param asked - of the header `If-Match` and of the body, where they are there
 * @throws VERSION_STALE 41200
 */
export function checkVersion(
    { version }: { readonly version: number },
    ...asked: readonly (string | number | null | undefined)[]
): void {
    if (asked.some((each) => each != null && each !== '*' && String(each) !== String(version))) {
        throw errors.stale(version);
    }
}

/** What is wrong with an imported row, from the error that refuses it. @throws any error that is no refusal */
export function describeProblem(error: unknown): string {
    if (!isFailure(error)) {
        throw error;
    }
    const { errors: problems } = (error.data ?? {}) as { errors?: readonly { message: string }[] };
    return problems?.map(({ message }) => message).join(', ') ?? error.message;
}
