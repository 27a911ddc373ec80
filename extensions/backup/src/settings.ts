/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    concurrentRuns: joi
        .number()
        .integer()
        .min(1)
        .max(16)
        .default(2)
        .description('Runs at once, of all plans together; others wait')
        .label('Runs at once'),
    runsKept: joi
        .number()
        .integer()
        .min(10)
        .max(100_000)
        .default(500)
        .description('Finished runs that are kept, of all plans together')
        .label('Runs kept'),
    staleHours: joi
        .number()
        .integer()
        .min(1)
        .max(8_760)
        .default(48)
        .description('An enabled plan without a success for so long is reported')
        .label('A plan is stale after')
        .unit('hour'),
    scratchFolder: joi.typed<string | undefined>(
        joi
            .string()
            .pattern(/^\/[^\0\r\n]*[^/\0\r\n]$/)
            .pattern(/^\/(proc|sys|dev)(\/|$)|\/\.{0,2}(\/|$)/, { invert: true })
            .max(1_000)
            .optional()
            .description(
                'Where copies of the panel and of plugins lie during runs, restores and drills; default: the folder of this plugin'
            )
            .label('Folder for copies')
            .meta({ ui: { widget: 'path' } })
    ),
    timezone: joi.typed<string | undefined>(
        joi
            .string()
            .max(64)
            .custom(
                (value: string, helpers) => (isZone(value) ? value : helpers.error('any.invalid')),
                'A time zone that this machine knows'
            )
            .optional()
            .description("Time zone of schedules that name none; default: the machine's")
            .label('Time zone')
    )
});

/** Whether this machine knows a time zone of that name. */
export function isZone(name: string): boolean {
    try {
        new Intl.DateTimeFormat('en', { timeZone: name });
        return !/^[+-]/.test(name);
    } catch {
        return false;
    }
}

/** The context of this plugin. */
export type Ctx = Context<Value<typeof settings>>;
