/** Figures of a container over the last minutes, as they come. */
import { useMemo, useState } from 'preact/hooks';

import { Chart } from '../../kit/display/chart.tsx';
import { t } from '../../words/t.ts';
import { type Stats, useEvents } from './container-view.ts';

const kept = 300;
/** One point makes no line. */
const least = 2;

/** The charts. @param path - of the stream of the figures */
export function Figures({ path }: { readonly path: string }) {
    const [all, setAll] = useState<readonly Stats[]>([]);
    useEvents(path, (data) => setAll((before) => [...before, data as Stats].slice(-kept)));
    const charts = useMemo(() => chartsOf(all), [all]);
    return all.length < least ? (
        <p class="empty" role="status">
            {t('Waiting for the first figures …')}
        </p>
    ) : (
        <div class="charts">
            {charts.map((each) => (
                <section key={each.title} class="card">
                    <Chart {...each} />
                </section>
            ))}
        </div>
    );
}

function chartsOf(all: readonly Stats[]) {
    const times = all.map(({ at }) => Date.parse(at) / 1000);
    return [
        {
            title: t('Processor'),
            unit: 'percent',
            times,
            series: [{ name: t('Used'), values: all.map(({ cpuPercent }) => cpuPercent) }]
        },
        {
            title: t('Memory'),
            unit: 'byte',
            times,
            series: [{ name: t('Used'), values: all.map(({ memoryBytes }) => memoryBytes) }]
        },
        {
            title: t('Network'),
            unit: 'byte/second',
            times,
            series: [
                { name: t('Received'), values: ratesOf(all, times, ({ netRxBytes }) => netRxBytes) },
                { name: t('Sent'), values: ratesOf(all, times, ({ netTxBytes }) => netTxBytes) }
            ]
        }
    ];
}

/** What a counter gained a second; null for the first figure, and where it began anew. */
function ratesOf(
    all: readonly Stats[],
    times: readonly number[],
    of: (stats: Stats) => number
): readonly (number | null)[] {
    return all.map((stats, index) => {
        const before = all[index - 1];
        const seconds = (times[index] ?? 0) - (times[index - 1] ?? 0);
        const gained = before === undefined ? -1 : of(stats) - of(before);
        return gained < 0 || seconds <= 0 ? null : gained / seconds;
    });
}
