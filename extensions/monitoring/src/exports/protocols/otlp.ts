/** The body of OTLP over HTTP in JSON: `ExportMetricsServiceRequest` (https://opentelemetry.io/docs/specs/otlp/#otlphttp). */
import type { Unit } from '../../sampling/metrics.ts';
import type { Batch, ExportedValue } from './series.ts';

/** The headers that belong to the body. */
export const otlpHeaders = { 'content-type': 'application/json' } as const;

/** Units as UCUM writes them. */
const units: Readonly<Record<Unit, string>> = {
    percent: '%',
    bytes: 'By',
    'bytes/s': 'By/s',
    '1/s': '1/s',
    count: '1',
    ms: 'ms',
    days: 'd',
    '°C': 'Cel',
    W: 'W'
};

/** Encodes a batch as JSON of OTLP/HTTP (OpenTelemetry protocol, metrics). */
export function encodeOtlp({ at, labels, values }: Batch): Buffer {
    const byMetric = Map.groupBy(values, ({ metric }) => metric);
    const time = `${at}000000`;
    const point = ({ metric, instance, value }: ExportedValue) => ({
        timeUnixNano: time,
        asDouble: value,
        attributes: metric.scope === null ? [] : attributesOf({ [metric.scope]: instance })
    });
    return Buffer.from(
        JSON.stringify({
            resourceMetrics: [
                {
                    resource: { attributes: attributesOf({ 'service.name': 'portico', ...labels }) },
                    scopeMetrics: [
                        {
                            scope: { name: 'portico.monitoring' },
                            metrics: [...byMetric].map(([metric, all]) => ({
                                name: `portico.${metric.name}`,
                                description: metric.summary,
                                unit: units[metric.unit],
                                gauge: { dataPoints: all.map(point) }
                            }))
                        }
                    ]
                }
            ]
        })
    );
}

function attributesOf(labels: Readonly<Record<string, string>>) {
    return Object.entries(labels).map(([key, value]) => ({ key, value: { stringValue: value } }));
}
