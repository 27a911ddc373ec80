/** The shapes of rules and alerts in requests and answers. */
import { joi, type Value } from '@portico/sdk';

import type { AlertRow, RuleRow } from '../entities.ts';

const ignored = joi.any().description('Read only; ignored in a write');
const readOnly = { id: ignored, firing: ignored, createdAt: ignored, updatedAt: ignored };
const name = joi
    .string()
    .min(1)
    .max(100)
    .pattern(/^\P{Cc}+$/u);
const metric = joi
    .string()
    .min(1)
    .max(300)
    .description(
        '`cpu.usage`; `disk.usedPercent` watches every disk by itself, `disk.usedPercent:/srv` only that one'
    );
const operator = joi
    .valid('>', '>=', '<', '<=')
    .description('How a value that is too much compares to the threshold');
const threshold = joi.number().min(-1e15).max(1e15);
const recoverThreshold = threshold
    .allow(null)
    .description('Where the value must be again for the alert to end; null: at the threshold itself');
const forSeconds = joi
    .number()
    .integer()
    .min(0)
    .max(86_400)
    .description(
        'How long the value must be beyond the threshold to fire, and on the good side of `recoverThreshold` to recover'
    );
const severity = joi.valid('info', 'warning', 'critical');

/** The body that creates a rule. */
export const newRule = joi.object({
    name: name.required(),
    metric: metric.required(),
    operator: operator.default('>'),
    threshold: threshold.required(),
    recoverThreshold: recoverThreshold.default(null),
    forSeconds: forSeconds.default(60),
    severity: severity.default('warning'),
    enabled: joi.boolean().default(true),
    version: ignored,
    ...readOnly
});
/** The body that changes a rule; fields that it leaves out stay as they are. */
export const changedRule = joi.object({
    name,
    metric,
    operator,
    threshold,
    recoverThreshold,
    forSeconds,
    severity,
    enabled: joi.boolean(),
    version: joi.number().integer().description('Acts as If-Match'),
    ...readOnly
});
/** A new rule. */
export type NewRule = Value<typeof newRule>;
/** A change of a rule. */
export type ChangedRule = Value<typeof changedRule>;

/** Reads the rules of an export, which another version may have written. @throws TypeError when they are not rules */
export function exportedRules(data: unknown): readonly NewRule[] {
    const { rules } = (data ?? {}) as { readonly rules?: unknown };
    const { error, value } = joi.array().items(newRule).required().validate(rules);
    if (error !== undefined) {
        throw new TypeError(`The exported rules cannot be read: ${error.message}`);
    }
    return value as readonly NewRule[];
}

/** A rule in answers. */
export const ruleSchema = joi.object({
    id: joi.number().integer().required(),
    name: joi.string().required(),
    metric: joi.string().required(),
    operator: joi.valid('>', '>=', '<', '<=').required(),
    threshold: joi.number().required(),
    recoverThreshold: joi.number().allow(null).required(),
    forSeconds: joi.number().integer().required(),
    severity: joi.valid('info', 'warning', 'critical').required(),
    enabled: joi.boolean().required(),
    firing: joi.number().integer().required().description('Alerts of this rule that fire now'),
    version: joi.number().integer().required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required()
});
/** A rule in answers. */
export type RuleView = Value<typeof ruleSchema>;

/** Why an alert ended. */
export const endings = ['recovered', 'gone', 'rule-changed', 'rule-disabled', 'rule-deleted'] as const;
/** Why an alert ended. */
export type Ending = (typeof endings)[number];

/** An alert in answers. */
export const alertSchema = joi.object({
    id: joi.number().integer().required(),
    ruleId: joi.number().integer().required(),
    name: joi.string().required(),
    metric: joi.string().required(),
    instance: joi.string().allow(null).required(),
    operator: joi.valid('>', '>=', '<', '<=').required(),
    threshold: joi.number().required(),
    severity: joi.valid('info', 'warning', 'critical').required(),
    state: joi.valid('firing', 'ended').required(),
    value: joi.number().required().description('When it fired'),
    worst: joi.number().required(),
    last: joi.number().required(),
    firedAt: joi.string().isoDate().required(),
    endedAt: joi.string().isoDate().allow(null).required(),
    endedBy: joi
        .valid(...endings)
        .allow(null)
        .required()
        .description('`gone`: nothing was measured for an hour')
});
/** An alert in answers. */
export type AlertView = Value<typeof alertSchema>;

/** Shows a rule as answers have it. */
export function toRuleView(row: RuleRow, firing: number): RuleView {
    return {
        id: row.id,
        name: row.name,
        metric: row.metric,
        operator: row.operator as RuleView['operator'],
        threshold: row.threshold,
        recoverThreshold: row.recoverThreshold ?? null,
        forSeconds: row.forSeconds,
        severity: row.severity as RuleView['severity'],
        enabled: row.enabled,
        firing,
        version: row.version,
        createdAt: new Date(row.createdAt).toISOString(),
        updatedAt: new Date(row.updatedAt).toISOString()
    };
}

/** Shows an alert as answers have it. */
export function toAlertView(row: AlertRow): AlertView {
    return {
        id: row.id,
        ruleId: row.rule,
        name: row.name,
        metric: row.metric,
        instance: row.instance === '' ? null : row.instance,
        operator: row.operator as AlertView['operator'],
        threshold: row.threshold,
        severity: row.severity as AlertView['severity'],
        state: row.endedAt === null || row.endedAt === undefined ? 'firing' : 'ended',
        value: row.value,
        worst: row.worst,
        last: row.last,
        firedAt: new Date(row.firedAt).toISOString(),
        endedAt:
            row.endedAt === null || row.endedAt === undefined ? null : new Date(row.endedAt).toISOString(),
        endedBy: (row.endedBy ?? null) as AlertView['endedBy']
    };
}
