/** Requests to the hosts over time, by what became of them. */
import { useQuery } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { call } from '../../api/client.ts';
import type { ApiFailure } from '../../api/failure.ts';
import { Chart } from '../../kit/display/chart.tsx';
import { t } from '../../words/t.ts';
import { type Step, trafficOf, type TrafficRow } from './traffic.ts';

const path = '/api/plugins/monitoring/traffic';
const refetchMs = 60_000;
/** One chart has so many points, or fewer where there are many hosts. */
const points = [60, 12] as const;

/** The chart. @param ms - how far it looks back */
export function Requests({ ms }: { readonly ms: number }) {
    const { data } = useQuery<{ readonly rows: readonly TrafficRow[]; readonly step: Step }, ApiFailure>({
        queryKey: ['traffic', ms],
        refetchInterval: refetchMs,
        queryFn: ({ signal }) => read(ms, points[0], signal).catch(() => read(ms, points[1], signal))
    });
    const drawn = useMemo(() => (data === undefined ? null : trafficOf(data.rows, data.step)), [data]);
    if (drawn === null) {
        return null;
    }
    return (
        <section class="card">
            {data?.rows.length === 0 ? (
                <>
                    <h2>{t('Requests')}</h2>
                    <p class="dim">
                        {t('No request was recorded.')}{' '}
                        <Link href="/settings">
                            {t('The setting of the access log makes the engine record them.')}
                        </Link>
                    </p>
                </>
            ) : (
                <Chart title={t('Requests')} unit={undefined} {...drawn} />
            )}
        </section>
    );
}

async function read(
    ms: number,
    count: number,
    signal: AbortSignal
): Promise<{ readonly rows: readonly TrafficRow[]; readonly step: Step }> {
    const seconds = Math.max(60, Math.round(ms / 1000 / count / 60) * 60);
    const to = Math.floor(Date.now() / 60_000) * 60_000 + 60_000;
    const from = to - ms;
    const { data } = await call<readonly TrafficRow[]>('GET', path, {
        query: { from: new Date(from).toISOString(), to: new Date(to).toISOString(), step: seconds },
        signal
    });
    return {
        rows: data,
        step: { from: Math.floor(from / 1000 / seconds) * seconds, to: to / 1000, seconds }
    };
}
