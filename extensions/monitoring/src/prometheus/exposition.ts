/** The text format of Prometheus, version 0.0.4. */
import { type Exposed, listFamilies } from './families.ts';
import type { Labels } from './family.ts';

/** The media type of the text. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

/** Writes all metrics as text. A family without values is left out together with its HELP and TYPE. */
export function expose(exposed: Exposed): string {
    return listFamilies(exposed)
        .map(({ name, type, help, points }) => {
            const lines = points
                .filter((point): point is readonly [Labels, number] => typeof point[1] === 'number')
                .map(([labels, value]) => `${name}${formatLabels(labels)} ${formatNumber(value)}\n`);
            return lines.length === 0
                ? ''
                : `# HELP ${name} ${help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`;
        })
        .join('');
}

function formatLabels(labels: Labels): string {
    const pairs = Object.entries(labels).map(
        ([name, value]) =>
            `${name}="${value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')}"`
    );
    return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function formatNumber(value: number): string {
    return Number.isNaN(value) ? 'NaN' : Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
