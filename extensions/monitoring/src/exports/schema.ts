/** The shapes of exports in requests and answers. */
import { joi, type Value } from '@portico/sdk';

import { headerValue } from '../headers.ts';

const type = joi
    .choice({ remote_write: 'Prometheus remote_write', otlp: 'OTLP (JSON over HTTP)' })
    .label('Type');
const fields = {
    url: joi
        .string()
        .max(2_000)
        .pattern(/^https?:\/\/[^\s]+$/, 'address')
        .label('Address')
        .description('Where metrics are sent, with its path: `https://prometheus.example.com/api/v1/write`'),
    headers: joi
        .record(headerValue)
        .max(20)
        .label('Headers')
        .description(
            'Such as `Authorization`. Values are never read back; `{ "set": true }` stands for each, and keeps it in a write'
        ),
    metrics: joi
        .array()
        .items(joi.string().min(1).max(300))
        .unique()
        .max(200)
        .label('Metrics')
        .description('Names, or `name:instance`; none means all')
        .meta({ ui: { widget: 'lines' } }),
    intervalSeconds: joi.number().integer().min(10).max(3_600).label('Every').unit('second'),
    labels: joi
        .record(joi.string().max(200).allow(''))
        .max(20)
        .label('Labels')
        .description('Sent with each value; without an `instance`, the name of the machine is sent as such'),
    enabled: joi.boolean().label('Enabled')
};
const ignored = joi.readOnly(joi.any()).description('Ignored in a write');
const readOnly = {
    id: ignored,
    lastSuccessAt: ignored,
    lastError: ignored,
    queued: ignored,
    dropped: ignored,
    createdAt: ignored,
    updatedAt: ignored
};

/** The body that creates an export. */
export const newExport = joi.object({
    type: type.required(),
    url: fields.url.required(),
    headers: fields.headers.default({}),
    metrics: fields.metrics.default([]),
    intervalSeconds: fields.intervalSeconds.default(60),
    labels: fields.labels.default({}),
    enabled: fields.enabled.default(true),
    version: ignored,
    ...readOnly
});
/** The body that changes an export; fields that it leaves out stay as they are. */
export const changedExport = joi.object({
    type,
    ...fields,
    version: joi.number().integer().label('Version').description('Acts as If-Match'),
    ...readOnly
});
/** A checked export that is to be made. */
export type NewExport = Value<typeof newExport>;
/** A change of an export. */
export type ChangedExport = Value<typeof changedExport>;

const time = (label: string) => joi.string().isoDate().label(label);

/** An export in answers. */
export const exportSchema = joi.object({
    id: joi
        .number()
        .integer()
        .required()
        .label('Number')
        .meta({ ui: { column: false } }),
    type: type.required().meta({ ui: { column: 2 } }),
    url: fields.url.required().meta({ ui: { column: 1 } }),
    enabled: fields.enabled.required().meta({ ui: { column: 3 } }),
    lastSuccessAt: time('Sent last')
        .allow(null)
        .required()
        .meta({ ui: { column: 4 } }),
    lastError: joi
        .string()
        .allow(null)
        .required()
        .label('What is wrong')
        .description('Of the last try; null when it was good')
        .meta({ ui: { column: 5 } }),
    queued: joi
        .number()
        .integer()
        .required()
        .label('Waiting')
        .description('Samples that wait to be sent')
        .meta({ ui: { column: 6 } }),
    dropped: joi
        .number()
        .integer()
        .required()
        .label('Dropped')
        .description('Samples that were refused, or waited for too long'),
    intervalSeconds: fields.intervalSeconds.required(),
    headers: fields.headers.required(),
    metrics: fields.metrics.required(),
    labels: fields.labels.required(),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    createdAt: time('Created').required(),
    updatedAt: time('Changed').required()
});
/** An export in answers. */
export type ExportView = Value<typeof exportSchema>;
