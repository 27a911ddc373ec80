/** The shapes of silences in requests and answers. */
import { joi, type Value } from '@portico/sdk';

import type { SilenceRow } from './entities.ts';

const fields = {
    ruleId: joi
        .number()
        .integer()
        .min(1)
        .allow(null)
        .label('Rule')
        .description('Null: of any rule')
        .meta({ ui: { ref: 'monitoring.rules', column: 1 } }),
    metric: joi
        .string()
        .min(1)
        .max(100)
        .allow(null)
        .label('Metric')
        .description('Null: of any metric')
        .meta({ ui: { column: 2 } }),
    instance: joi
        .string()
        .min(1)
        .max(300)
        .allow(null)
        .label('Instance')
        .description('Null: of any instance')
        .meta({ ui: { column: 3 } }),
    from: joi
        .string()
        .isoDate()
        .label('From')
        .meta({ ui: { column: 4 } }),
    until: joi
        .string()
        .isoDate()
        .label('Until')
        .meta({ ui: { column: 5 } }),
    reason: joi
        .string()
        .max(500)
        .allow('')
        .label('Reason')
        .meta({ ui: { column: 6 } })
};
const ignored = joi.readOnly(joi.any()).description('Ignored in a write');
const readOnly = { id: ignored, active: ignored, createdBy: ignored };

/** The body that creates a silence. */
export const newSilence = joi.object({
    ruleId: fields.ruleId.default(null),
    metric: fields.metric.default(null),
    instance: fields.instance.default(null),
    from: fields.from.description('Default: now'),
    until: fields.until.required(),
    reason: fields.reason.default(''),
    version: ignored,
    ...readOnly
});
/** The body that changes a silence; fields that it leaves out stay as they are. */
export const changedSilence = joi.object({
    ...fields,
    version: joi.number().integer().label('Version').description('Acts as If-Match'),
    ...readOnly
});
/** A silence in answers. */
export const silenceSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    ruleId: fields.ruleId.required(),
    metric: fields.metric.required(),
    instance: fields.instance.required(),
    from: fields.from.required(),
    until: fields.until.required(),
    reason: fields.reason.required(),
    active: joi.boolean().required().label('Active now'),
    createdBy: joi.string().allow(null).required().label('Made by'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } })
});
/** A checked silence that is to be made. */
export type NewSilence = Value<typeof newSilence>;
/** A change of a silence. */
export type ChangedSilence = Value<typeof changedSilence>;
/** A silence in answers. */
export type SilenceView = Value<typeof silenceSchema>;

/** Shows a silence as answers have it. */
export function toSilenceView(row: SilenceRow, now: number): SilenceView {
    return {
        id: row.id,
        ruleId: row.ruleId ?? null,
        metric: row.metric ?? null,
        instance: row.instance ?? null,
        from: new Date(row.from).toISOString(),
        until: new Date(row.until).toISOString(),
        reason: row.reason,
        active: row.from <= now && now < row.until,
        createdBy: row.createdBy ?? null,
        version: row.version
    };
}

/** Reads the silences of an export, which another version may have written. @throws TypeError when they are not silences */
export function exportedSilences(data: unknown): readonly NewSilence[] {
    const { silences } = (data ?? {}) as { readonly silences?: unknown };
    const { error, value } = joi.array().items(newSilence).required().validate(silences);
    if (error !== undefined) {
        throw new TypeError(`The exported silences cannot be read: ${error.message}`);
    }
    return value as readonly NewSilence[];
}
