/** The values of a sample as series for other systems: a name, labels, and a number. */
import { type Metric, metrics, parseSeriesName, readValues } from '../../sampling/metrics.ts';
import type { Sample } from '../../sampling/sample.ts';

/** One value of a metric in a batch. */
export interface ExportedValue {
    readonly metric: Metric;
    /** `''` where the metric has no instances. */
    readonly instance: string;
    readonly value: number;
}

/** What is sent at once. */
export interface Batch {
    /** Milliseconds since 1970. */
    readonly at: number;
    /** The same for all values. */
    readonly labels: Readonly<Record<string, string>>;
    readonly values: readonly ExportedValue[];
}

/** The values of a sample that are wanted: metrics or `metric:instance`; none means all. */
export function batchOf(
    sample: Sample,
    wanted: readonly string[],
    labels: Readonly<Record<string, string>>
): Batch {
    const all = readValues(sample);
    const references = wanted.flatMap((name) => parseSeriesName(name) ?? []);
    const isWanted = (name: string, instance: string): boolean =>
        wanted.length === 0 ||
        references.some(
            (each) => each.metric.name === name && (each.instance === null || each.instance === instance)
        );
    return {
        at: Date.parse(sample.at),
        labels,
        values: metrics.flatMap((metric) =>
            [...(all.get(metric.name) ?? [])]
                .filter(([instance]) => isWanted(metric.name, instance))
                .map(([instance, value]) => ({ metric, instance, value }))
        )
    };
}
