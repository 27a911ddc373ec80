/** Values over time, on a canvas: the newest are said in words, those under the pointer too. */
import { useEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';

import { fullTime, quantity } from '../../words/format.ts';
import { language } from '../../words/language.ts';
import { t } from '../../words/t.ts';

import 'uplot/dist/uPlot.min.css';

/** One line of a chart. */
export interface Series {
    readonly name: string;
    /** In the order of the times; null where nothing was measured. */
    readonly values: readonly (number | null)[];
}

const height = 180;
/** Names of custom properties: lines of one chart differ in lightness, too. */
const colours = ['--accent', '--good', '--warning', '--bad'];

/** The chart. @param times - in seconds since 1970 @param unit - `x-unit` of the values */
export function Chart({
    title,
    times,
    series,
    unit
}: {
    readonly title: string;
    readonly times: readonly number[];
    readonly series: readonly Series[];
    readonly unit: string | undefined;
}) {
    const place = useRef<HTMLDivElement>(null);
    const [pointed, setPointed] = useState<number | null>(null);
    const scheme = useScheme();
    useEffect(() => {
        const element = place.current;
        if (element === null) {
            return undefined;
        }
        const plot = new UPlot(
            optionsOf(element, series, unit, setPointed),
            [[...times], ...series.map(({ values }) => [...values])],
            element
        );
        const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
        observer.observe(element);
        return () => {
            observer.disconnect();
            plot.destroy();
        };
    }, [times, series, unit, scheme]);
    const at = pointed ?? times.length - 1;
    const time = times[at];
    return (
        <figure class="chart">
            <figcaption class="row spread">
                <strong>{title}</strong>
                <span class="row">
                    {series.map(({ name, values }, index) => (
                        <span key={name} class={`key key-${index}`}>
                            {name} <span class="number">{textOf(values[at], unit)}</span>
                        </span>
                    ))}
                </span>
            </figcaption>
            <div ref={place} role="img" aria-label={spoken(title, series, unit)} />
            <small class="row spread">
                <span>
                    {pointed === null || time === undefined
                        ? ' '
                        : fullTime(new Date(time * 1000).toISOString())}
                </span>
            </small>
        </figure>
    );
}

function optionsOf(
    element: HTMLElement,
    series: readonly Series[],
    unit: string | undefined,
    onPoint: (index: number | null) => void
): UPlot.Options {
    const [dim, line] = [colourOf(element, '--dim'), colourOf(element, '--line')];
    const axis = {
        stroke: dim,
        grid: { stroke: line, width: 1 },
        ticks: { show: false },
        font: '11px system-ui'
    };
    return {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
            y: {
                range: (_plot, _low, high) => [
                    0,
                    unit === 'percent' ? 100 : Math.max(high * 1.1, unit?.startsWith('byte') === true ? 8 : 1)
                ]
            }
        },
        axes: [
            { ...axis, space: 70, size: 28, values: (_plot, ticks) => ticks.map(clockOf(ticks)) },
            { ...axis, size: 78, values: (_plot, ticks) => ticks.map((each) => quantity(each, unit)) }
        ],
        series: [
            {},
            ...series.map(({ name }, index) => {
                const colour = colourOf(element, colours[index % colours.length] ?? '--accent');
                return {
                    label: name,
                    stroke: colour,
                    width: 1.75,
                    points: { show: false },
                    ...(index === 0 ? { fill: colour.replace('rgb(', 'rgba(').replace(')', ', 0.12)') } : {})
                };
            })
        ],
        hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] }
    };
}

/** Names of the times of an axis: the second within ten minutes, the hour within two days, else the day. */
function clockOf(ticks: readonly number[]): (time: number) => string {
    const seconds = (ticks.at(-1) ?? 0) - (ticks[0] ?? 0);
    const clock = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
    const format = new Intl.DateTimeFormat(
        language(),
        seconds > 2 * 86_400
            ? { month: 'short', day: 'numeric' }
            : { ...clock, ...(seconds < 600 ? { second: '2-digit' } : {}) }
    );
    return (time) => format.format(time * 1000);
}

/** A colour as a canvas understands it. */
function colourOf(element: HTMLElement, name: string): string {
    const probe = document.createElement('span');
    probe.style.color = `var(${name})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
}

/** The chart for those who hear it. */
function spoken(title: string, series: readonly Series[], unit: string | undefined): string {
    const lines = series.map(({ name, values }) => {
        const known = values.filter((each) => each !== null);
        return t('{name}: now {now}, highest {highest}', {
            name,
            now: textOf(known.at(-1), unit),
            highest: textOf(known.length === 0 ? null : Math.max(...known), unit)
        });
    });
    return `${title}. ${lines.join('. ')}`;
}

const textOf = (value: number | null | undefined, unit: string | undefined): string =>
    value === null || value === undefined ? '–' : quantity(value, unit);

function useScheme(): boolean {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const [isDark, setDark] = useState(query.matches);
    useEffect(() => {
        const listen = (): void => setDark(query.matches);
        query.addEventListener('change', listen);
        return () => query.removeEventListener('change', listen);
    }, []);
    return isDark;
}
