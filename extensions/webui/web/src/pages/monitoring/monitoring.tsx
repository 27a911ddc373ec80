/** The machine over time: processors, memory, disks, network and requests. */
import { useQueries } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { useRead } from '../../api/queries.ts';
import { Chart } from '../../kit/display/chart.tsx';
import { useQueryValue } from '../../kit/forms/filter.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { Requests } from './requests.tsx';

interface Metric {
    readonly name: string;
    readonly instances: readonly string[];
}
interface History {
    readonly unit: string;
    readonly points: readonly { readonly at: string; readonly avg: number | null }[];
}

const base = '/api/plugins/monitoring/metrics';
const hour = 3_600_000;
const ranges = (): readonly { readonly id: string; readonly title: string; readonly ms: number }[] => [
    { id: '1h', title: t('An hour'), ms: hour },
    { id: '6h', title: t('6 hours'), ms: 6 * hour },
    { id: '1d', title: t('A day'), ms: 24 * hour },
    { id: '7d', title: t('A week'), ms: 168 * hour },
    { id: '30d', title: t('A month'), ms: 720 * hour }
];

/** Shows the screen *Monitoring*: charts of the chosen range. */
export default function Monitoring() {
    const { data: catalogue, error } = useRead<readonly Metric[]>(`${base}/catalogue`);
    const [range, setRange] = useQueryValue('range');
    const chosen = ranges().find(({ id }) => id === range) ?? ranges()[0];
    return (
        <Page
            title={t('Machine')}
            lead={t('What the machine did. Rules tell you when it does too much.')}
            actions={
                <Link class="button" href="/p/monitoring">
                    {t('Rules and alerts')}
                </Link>
            }
        >
            <fieldset class="segments">
                <legend class="offscreen">{t('Time')}</legend>
                {ranges().map(({ id, title }) => (
                    <label key={id}>
                        <input
                            type="radio"
                            name="range"
                            checked={id === chosen?.id}
                            onChange={() => setRange(id)}
                        />
                        {title}
                    </label>
                ))}
            </fieldset>
            {catalogue === undefined || chosen === undefined ? (
                <Waiting error={error} />
            ) : (
                <div class="columns wide">
                    <Requests ms={chosen.ms} />
                    {chartsOf(catalogue).map(({ title, metrics }) => (
                        <Metrics key={title} title={title} ms={chosen.ms} metrics={metrics} />
                    ))}
                </div>
            )}
        </Page>
    );
}

/** A chart: its title, and its metrics with their names. */
interface ChartPlan {
    readonly title: string;
    readonly metrics: readonly (readonly [metric: string, title: string])[];
}

/** The charts of what there is. Links of containers are left out: there is one for each, and it says little. */
function chartsOf(catalogue: readonly Metric[]): readonly ChartPlan[] {
    const instances = (metric: string): readonly string[] =>
        (catalogue.find(({ name }) => name === metric)?.instances ?? [])
            .filter((name) => !/^(lo|ifb|veth|docker|br-)/.test(name))
            .slice(0, 4);
    const pair = (
        title: string,
        one: string,
        two: string,
        [first, second]: readonly [string, string]
    ): ChartPlan => ({
        title,
        metrics: [
            [one, first],
            [two, second]
        ]
    });
    return [
        pair(t('Processors'), 'cpu.usage', 'cpu.iowait', [t('all'), t('waits for disks')]),
        pair(t('Memory'), 'memory.usedPercent', 'swap.usedPercent', [t('used'), t('swap')]),
        pair(t('Load'), 'load.one', 'load.fifteen', [t('1 minute'), t('15 minutes')]),
        ...instances('network.rx').map((name) =>
            pair(t('Network {name}', { name }), `network.rx:${name}`, `network.tx:${name}`, [
                t('in'),
                t('out')
            ])
        ),
        ...instances('device.read').map((name) =>
            pair(t('Disk {name}', { name }), `device.read:${name}`, `device.write:${name}`, [
                t('read'),
                t('written')
            ])
        ),
        ...instances('disk.usedPercent').map((name) => ({
            title: t('Space on {name}', { name }),
            metrics: [[`disk.usedPercent:${name}`, t('used')] as const]
        }))
    ];
}

/** Some metrics in one chart. */
function Metrics({
    title,
    ms,
    metrics
}: {
    readonly title: string;
    readonly ms: number;
    readonly metrics: ChartPlan['metrics'];
}) {
    const answers = useQueries({
        queries: metrics.map(([metric]) => ({
            queryKey: ['history', metric, ms],
            refetchInterval: ms <= 6 * hour ? 10_000 : 60_000,
            queryFn: async ({ signal }: { signal: AbortSignal }) =>
                (
                    await call<History>('GET', `${base}/history`, {
                        query: { metric, from: new Date(Date.now() - ms).toISOString() },
                        signal
                    })
                ).data
        }))
    });
    const [first] = answers;
    const histories = answers.map(({ data }) => data);
    const drawn = useMemo(
        () => ({
            times: (histories[0]?.points ?? []).map(({ at }) => Date.parse(at) / 1000),
            series: metrics.map(([, name], index) => ({
                name,
                values: (histories[index]?.points ?? []).map(({ avg }) => avg)
            }))
        }),
        histories
    );
    return (
        <section class="card">
            {first?.data === undefined ? (
                <>
                    <h2>{title}</h2>
                    <Waiting error={null} />
                </>
            ) : (
                <Chart title={title} unit={units[first.data.unit]} {...drawn} />
            )}
        </section>
    );
}

/** The plugin's units in the words of `x-unit`. */
const units: Readonly<Record<string, string>> = {
    percent: 'percent',
    bytes: 'byte',
    'bytes/s': 'byte/second'
};
