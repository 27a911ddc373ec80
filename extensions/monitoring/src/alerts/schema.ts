/** The shapes of rules and alerts in requests and answers. */
import { joi, type Value } from '@portico/sdk';

import type { AlertRow, RuleRow } from '../entities.ts';

const ignored = joi.readOnly(joi.any()).description('Ignored in a write');
const readOnly = {
    id: ignored,
    firing: ignored,
    authorized: ignored,
    createdAt: ignored,
    updatedAt: ignored
};
const name = joi
    .string()
    .min(1)
    .max(100)
    .pattern(/^\P{Cc}+$/u)
    .label('Name');
const metric = joi
    .string()
    .min(1)
    .max(300)
    .label('Metric')
    .description(
        '`cpu.usage`; `disk.usedPercent` watches every disk by itself, `disk.usedPercent:/srv` only that one'
    );
const operator = joi
    .valid('>', '>=', '<', '<=', 'absent')
    .label('Comparison')
    .description(
        'How a value that is too much compares to the threshold; `absent`: there is no value for `forSeconds`'
    );
const threshold = joi.number().min(-1e15).max(1e15).label('Threshold');
const recoverThreshold = threshold
    .allow(null)
    .label('Recovers at')
    .description('Where the value must be again for the alert to end; null: at the threshold itself');
const forSeconds = joi
    .number()
    .integer()
    .min(0)
    .max(86_400)
    .label('For')
    .unit('second')
    .description(
        'How long the value must be beyond the threshold to fire, and on the good side of `recoverThreshold` to recover'
    );
const severity = joi.valid('info', 'warning', 'critical').label('Severity');
const channels = joi
    .array()
    .items(joi.number().integer().min(1))
    .unique()
    .max(100)
    .allow(null)
    .label('Channels')
    .description('Ids of the notification channels that alone tell of it; null: those whose events match')
    .meta({ ui: { ref: 'channels.list' } });

const values = (label: string) => joi.object({}).unknown().label(label);
const repeatSeconds = joi
    .number()
    .integer()
    .min(60)
    .max(604_800)
    .allow(null)
    .label('Tell again every')
    .unit('second')
    .description('While it fires and is not acknowledged; null: it is told once');
const cooldownSeconds = joi
    .number()
    .integer()
    .min(0)
    .max(604_800)
    .label('Quiet for')
    .unit('second')
    .description(
        'An alert of the same rule and instance so soon after the last notification is recorded and not told'
    );
const action = joi
    .object({
        route: joi
            .string()
            .pattern(/^[a-z][A-Za-z0-9_.-]{1,99}$/, 'id of a route')
            .required()
            .label('Route')
            .description('As in the document of the API, such as `cronjob.runTask`'),
        params: values('Parameters of the path').default({}),
        query: values('Parameters of the query').default({}),
        payload: joi.any().allow(null).default(null).label('Body'),
        cooldownSeconds: joi
            .number()
            .integer()
            .min(60)
            .max(604_800)
            .default(600)
            .label('At most every')
            .unit('second'),
        perDay: joi.number().integer().min(1).max(1_000).default(10).label('At most a day')
    })
    .allow(null)
    .label('Action')
    .description(
        'A route of the panel that is called when an alert begins, in the name of the person who authorized it. Parameters and body are shown with the permission `write` alone'
    );

/** How answers show a severity. */
const severityUi = { tones: { info: 'neutral', warning: 'warning', critical: 'bad' } } as const;

/** The body that creates a rule. */
export const newRule = joi.object({
    name: name.required(),
    metric: metric.required(),
    operator: operator.default('>'),
    threshold: threshold.description('Needed, but for `absent`'),
    recoverThreshold: recoverThreshold.default(null),
    forSeconds: forSeconds.default(60),
    severity: severity.default('warning'),
    enabled: joi.boolean().default(true).label('Enabled'),
    channels: channels.default(null),
    repeatSeconds: repeatSeconds.default(null),
    cooldownSeconds: cooldownSeconds.default(0),
    action: action.default(null),
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
    enabled: joi.boolean().label('Enabled'),
    channels,
    repeatSeconds,
    cooldownSeconds,
    action,
    version: joi.number().integer().label('Version').description('Acts as If-Match'),
    ...readOnly
});
/** A checked alert rule that is to be made. */
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
    id: joi.number().integer().required().label('Number'),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    metric: joi
        .string()
        .required()
        .label('Metric')
        .meta({ ui: { column: 2 } }),
    operator: joi
        .valid('>', '>=', '<', '<=', 'absent')
        .required()
        .label('Comparison')
        .meta({ ui: { column: 3 } }),
    threshold: joi
        .number()
        .required()
        .label('Threshold')
        .meta({ ui: { column: 4 } }),
    recoverThreshold: joi.number().allow(null).required().label('Recovers at'),
    forSeconds: joi.number().integer().required().label('For').unit('second'),
    severity: severity.required().meta({ ui: severityUi }),
    enabled: joi
        .boolean()
        .required()
        .label('Enabled')
        .meta({ ui: { column: 5 } }),
    channels: channels.required(),
    repeatSeconds: repeatSeconds.required(),
    cooldownSeconds: cooldownSeconds.required(),
    action: action.required(),
    authorized: joi
        .boolean()
        .required()
        .label('Authorized')
        .description('A person let the rule call its route'),
    firing: joi
        .number()
        .integer()
        .required()
        .label('Firing')
        .description('Alerts of this rule that fire now')
        .meta({ ui: { column: 6 } }),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    createdAt: joi.string().isoDate().required().label('Created'),
    updatedAt: joi.string().isoDate().required().label('Changed')
});
/** A rule in answers. */
export type RuleView = Value<typeof ruleSchema>;

/** Why an alert ended. */
export const endings = ['recovered', 'gone', 'rule-changed', 'rule-disabled', 'rule-deleted'] as const;
/** Why an alert ended. */
export type Ending = (typeof endings)[number];

/** An alert in answers. */
export const alertSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    ruleId: joi
        .number()
        .integer()
        .required()
        .label('Rule')
        .meta({ ui: { ref: 'monitoring.rules' } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    metric: joi.string().required().label('Metric'),
    instance: joi
        .string()
        .allow(null)
        .required()
        .label('Instance')
        .meta({ ui: { column: 2 } }),
    operator: joi.valid('>', '>=', '<', '<=', 'absent').required().label('Comparison'),
    threshold: joi.number().required().label('Threshold'),
    severity: severity.required().meta({ ui: { ...severityUi, column: 4 } }),
    state: joi
        .valid('firing', 'ended')
        .required()
        .label('State')
        .meta({ ui: { column: 3, tones: { firing: 'bad', ended: 'good' } } }),
    value: joi.number().allow(null).required().label('Value').description('When it fired; null for `absent`'),
    worst: joi.number().allow(null).required().label('Worst value'),
    last: joi.number().allow(null).required().label('Last value'),
    firedAt: joi
        .string()
        .isoDate()
        .required()
        .label('Fired')
        .meta({ ui: { column: 5 } }),
    endedAt: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Ended')
        .meta({ ui: { column: 6 } }),
    endedBy: joi
        .valid(...endings)
        .allow(null)
        .required()
        .label('Ended because')
        .description('`gone`: nothing was measured for an hour'),
    acknowledgedBy: joi.string().allow(null).required().label('Acknowledged by'),
    acknowledgedAt: joi.string().isoDate().allow(null).required().label('Acknowledged'),
    note: joi.string().allow(null).required().label('Note'),
    silencedBy: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Silenced by')
        .meta({ ui: { ref: 'monitoring.silences' } })
});
/** An alert in answers. */
export type AlertView = Value<typeof alertSchema>;

/** Shows a rule as answers have it. @param isWhole - false: without what its action sends */
export function toRuleView(row: RuleRow, firing: number, isWhole = true): RuleView {
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
        channels: row.channels == null ? null : [...row.channels],
        repeatSeconds: row.repeatSeconds ?? null,
        cooldownSeconds: row.cooldownSeconds,
        action:
            row.action == null
                ? null
                : isWhole
                  ? { ...row.action }
                  : { ...row.action, params: {}, query: {}, payload: null },
        authorized: row.mandate != null,
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
        value: row.operator === 'absent' ? null : row.value,
        worst: row.operator === 'absent' ? null : row.worst,
        last: row.operator === 'absent' ? null : row.last,
        firedAt: new Date(row.firedAt).toISOString(),
        endedAt:
            row.endedAt === null || row.endedAt === undefined ? null : new Date(row.endedAt).toISOString(),
        endedBy: (row.endedBy ?? null) as AlertView['endedBy'],
        acknowledgedBy: row.acknowledgedBy ?? null,
        acknowledgedAt: row.acknowledgedAt == null ? null : new Date(row.acknowledgedAt).toISOString(),
        note: row.note ?? null,
        silencedBy: row.silencedBy ?? null
    };
}
