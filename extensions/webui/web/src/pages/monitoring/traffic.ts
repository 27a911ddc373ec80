/** Traffic by step and host, as a chart draws it: all hosts together, steps without a request as zero. */
import type { Series } from '../../kit/display/chart.tsx';
import { t } from '../../words/t.ts';

/** One step of one host. */
export interface TrafficRow {
    readonly at: string;
    readonly requests: number;
    readonly statuses: Readonly<Record<string, number>>;
}

/** The span that is drawn, in seconds. */
export interface Step {
    readonly from: number;
    readonly to: number;
    readonly seconds: number;
}

/** Times and lines of the chart. */
export function trafficOf(
    rows: readonly TrafficRow[],
    { from, to, seconds }: Step
): { readonly times: readonly number[]; readonly series: readonly Series[] } {
    const times = Array.from(
        { length: Math.ceil((to - from) / seconds) },
        (_each, index) => from + index * seconds
    );
    const bySlot = Map.groupBy(rows, ({ at }) => Math.floor((Date.parse(at) / 1000 - from) / seconds));
    const line = (name: string, count: (row: TrafficRow) => number): Series => ({
        name,
        values: times.map((_time, slot) => (bySlot.get(slot) ?? []).reduce((sum, row) => sum + count(row), 0))
    });
    return {
        times,
        series: [
            line(t('all'), ({ requests }) => requests),
            line(t('answered'), ({ statuses }) => (statuses['2xx'] ?? 0) + (statuses['3xx'] ?? 0)),
            line(t('refused (4xx)'), ({ statuses }) => statuses['4xx'] ?? 0),
            line(t('failed (5xx)'), ({ statuses }) => statuses['5xx'] ?? 0)
        ]
    };
}
