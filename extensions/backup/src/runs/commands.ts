/** Commands of an admin that run before and after a plan. */
import { joi, type Value } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Plan } from '../plans/plans.ts';
import type { Ctx } from '../settings.ts';
import type { RunLog } from './run-log.ts';

const text = joi
    .string()
    .pattern(/^[^\0]*$/)
    .max(4_000);
const commandSchema = joi.object({
    command: joi
        .array()
        .items(text.allow(''))
        .min(1)
        .max(100)
        .required()
        .label('Command')
        .description('Program and arguments; no shell'),
    user: joi
        .string()
        .pattern(/^[a-z_][a-z0-9_.-]{0,31}\$?$/i)
        .label('Account')
        .description("Default: the panel's")
        .meta({ ui: { widget: 'account' } }),
    timeoutSeconds: joi.number().integer().min(1).max(86_400).default(600).label('Ends after').unit('second')
});
/** The body of PUT `/plans/{id}/hooks`. */
export const hooksSchema = joi.object({
    before: joi.typed<Value<typeof commandSchema> | null | undefined>(
        commandSchema.allow(null).label('Before')
    ),
    after: joi.typed<Value<typeof commandSchema> | null | undefined>(commandSchema.allow(null).label('After'))
});
/** The commands of a plan. */
export type PlanCommands = { readonly [K in keyof Value<typeof hooksSchema>]?: Value<typeof hooksSchema>[K] };

const mostOutputBytes = 32 * 1024;

/** The commands of a plan. */
export async function commandsOf(ctx: Ctx, { hooks }: Plan): Promise<PlanCommands> {
    return hooks === null ? {} : (JSON.parse(await ctx.secrets.open(hooks)) as PlanCommands);
}

/**
 * Runs one of them; its output goes to the log of the run.
 *
 * @throws COMMAND_FAILED 50356 when it fails; TOOL_MISSING 50302; the signal's reason
 */
export async function runCommand(
    ctx: Ctx,
    which: 'before' | 'after',
    commands: PlanCommands,
    env: Readonly<Record<string, string>>,
    log: RunLog,
    signal: AbortSignal
): Promise<void> {
    const wanted = commands[which];
    if (wanted == null) {
        return;
    }
    const [file = '', ...args] = wanted.command;
    log.add('info', `The command ${which} the run starts`);
    const { code, stdout, stderr, timedOut } = await ctx.exec(file, args, {
        ...(wanted.user === undefined ? {} : { user: wanted.user }),
        env,
        timeoutSeconds: wanted.timeoutSeconds,
        maxOutputBytes: mostOutputBytes,
        signal
    });
    signal.throwIfAborted();
    const said = `${stdout}\n${stderr}`.split('\n').filter((line) => line.trim() !== '');
    said.slice(-100).forEach((line) => log.add(code === 0 ? 'info' : 'error', `${which}: ${line}`));
    if (code !== 0) {
        const message = timedOut
            ? `took more than ${wanted.timeoutSeconds} seconds`
            : `ended with ${code ?? 'a signal'}`;
        throw fail.COMMAND_FAILED({ which, message });
    }
}
