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

/** What is wrong with an imported row, from the error that refuses it. @throws any error that is no refusal */
export function describeProblem(error: unknown): string {
    if (!isFailure(error)) {
        throw error;
    }
    const { errors: problems } = (error.data ?? {}) as { errors?: readonly { message: string }[] };
    return problems?.map(({ message }) => message).join(', ') ?? error.message;
}
