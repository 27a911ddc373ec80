/** What the engine and its driver throw, as callers of the panel get it. */
import { fail } from '../platform/errors.ts';
import { EngineRejected, EngineUnavailable } from './port.ts';

/** 42200 for a refusal, 50301 for silence, each with the engine's words; anything else as it is. */
export const translateError = (error: unknown): unknown => {
    if (error instanceof EngineRejected) {
        return fail.ENGINE_REJECTED({ engine: error.message }, { cause: error });
    }

    return error instanceof EngineUnavailable
        ? fail.ENGINE_UNAVAILABLE({ engine: error.message }, { cause: error })
        : error;
};

/** Runs work with the engine. @throws ENGINE_REJECTED 42200, ENGINE_UNAVAILABLE 50301 */
export const translateErrors = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
        return await work();
    } catch (error) {
        throw translateError(error);
    }
};
