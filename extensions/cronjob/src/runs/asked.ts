/** Runs that a caller asks for, with values of parameters. */
import type { RunRow, TaskRow } from '../entities.ts';
import { checkValues, secretValues, shownValues, type Values } from '../parameters/values.ts';
import type { Ctx } from '../settings.ts';

/** Who asks for a run, and with which values. */
export interface Asked {
    readonly trigger: 'manual' | 'token';
    /** The user, or the name of the trigger. */
    readonly askedBy: string | null;
    /** As they came. */
    readonly values: Readonly<Record<string, unknown>>;
}

/** What a run is given; secret values sealed. @throws VALIDATION_FAILED 40001 */
export async function givenBy(
    ctx: Ctx,
    task: TaskRow,
    askedBy: string | null,
    values: Asked['values']
): Promise<Pick<RunRow, 'askedBy' | 'parameters' | 'secretParameters'>> {
    checkValues(values, task);
    const given = values as Values; // `checkValues` knows their types
    const [shown, secret] = [shownValues(given, task), secretValues(given, task)];
    return {
        askedBy,
        parameters: shown === null ? null : JSON.stringify(shown),
        secretParameters:
            Object.keys(secret).length === 0 ? null : await ctx.secrets.seal(JSON.stringify(secret))
    };
}
