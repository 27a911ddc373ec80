import { translateDiskFailure } from '../platform/database/disk-failure.ts';
import { fail } from '../platform/errors.ts';
import { EngineRejected, EngineUnavailable } from './port.ts';

/** Turns an error of the driver into one of the API: 42200 for a refusal, 50301 for silence, each with the engine's message; 50700 for a folder of the engine that is full. Other errors stay. */
export const translateError = (error: unknown): unknown => {
    if (error instanceof EngineRejected) {
        return fail.ENGINE_REJECTED({ engine: error.message }, { cause: error });
    }

    return error instanceof EngineUnavailable
        ? fail.ENGINE_UNAVAILABLE({ engine: error.message }, { cause: error })
        : translateDiskFailure(error);
};

/** Runs work, and translates the errors of the driver. @throws ENGINE_REJECTED 42200, ENGINE_UNAVAILABLE 50301, STORAGE_FULL 50700 */
export const translateErrors = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
        return await work();
    } catch (error) {
        throw translateError(error);
    }
};
