/** The machine now, where it is measured. */
import { useQuery } from '@tanstack/preact-query';

import { call } from '../../api/client.ts';
import { useDocument } from '../../api/document.ts';
import type { ApiFailure } from '../../api/failure.ts';
import { useMay } from '../../api/queries.ts';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { Figure } from './cards.tsx';

interface Sample {
    readonly cpu: { readonly usage: number | null };
    readonly memory: { readonly usedPercent: number | null };
    readonly disks: readonly { readonly mount: string; readonly usedPercent: number | null }[];
}

const everyMs = 10_000;

/** The card; nothing where no plugin measures, or the user may not see it. */
export function MachineCard() {
    const { data: document } = useDocument('panel');
    const may = useMay();
    const isThere = document?.tags.some(({ name }) => name === 'monitoring') === true;
    return isThere && may('monitoring:read') ? <Now /> : null;
}

function Now() {
    const { data } = useQuery<Sample, ApiFailure>({
        queryKey: ['machine'],
        refetchInterval: everyMs,
        queryFn: async ({ signal }) =>
            (await call<Sample>('GET', '/api/plugins/monitoring/metrics', { signal })).data
    });
    const fullest = data?.disks.toSorted(
        (left, right) => (right.usedPercent ?? 0) - (left.usedPercent ?? 0)
    )[0];
    return (
        <Figure
            title={t('Machine')}
            href="/monitoring"
            icon="chart"
            figure={data?.cpu.usage == null ? '–' : quantity(data.cpu.usage, 'percent')}
        >
            <div class="gauges">
                <Gauge title={t('Processors')} value={data?.cpu.usage} />
                <Gauge title={t('Memory')} value={data?.memory.usedPercent} />
                <Gauge
                    title={t('Disk {name}', { name: fullest?.mount ?? '' })}
                    value={fullest?.usedPercent}
                />
            </div>
        </Figure>
    );
}

function Gauge({ title, value }: { readonly title: string; readonly value: number | null | undefined }) {
    return (
        <label>
            <span>{title}</span>
            <meter min={0} max={100} low={70} high={90} optimum={20} value={value ?? 0} />
            <span class="number">{value == null ? '–' : quantity(value, 'percent')}</span>
        </label>
    );
}
