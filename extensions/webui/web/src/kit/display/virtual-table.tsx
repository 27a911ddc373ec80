/** A table of any length: only the rows that are seen are in the document, all of one height. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from '../../words/t.ts';

/** One column of a virtual table. */
export interface VirtualColumn<Row> {
    readonly key: string;
    readonly title: ComponentChildren;
    readonly cell: (row: Row) => ComponentChildren;
}

const spare = 8;
const narrow = '(max-width: 50rem)';

/** The table. Rows that are not there yet are empty lines until `onNear` has brought them. */
export function VirtualTable<Row>({
    caption,
    look,
    columns,
    rows,
    total,
    keyOf,
    heights,
    onNear
}: {
    readonly caption: string;
    /** Class of the table. */
    readonly look: string;
    readonly columns: readonly VirtualColumn<Row>[];
    readonly rows: readonly Row[];
    /** Rows that there are in all. */
    readonly total: number;
    readonly keyOf: (row: Row) => string;
    /** Height of a row in pixels, on a wide and on a narrow screen: the style has the same. */
    readonly heights: readonly [wide: number, narrow: number];
    /** Is told the last row that is seen. */
    readonly onNear: (row: number) => void;
}) {
    const height = useIsNarrow() ? heights[1] : heights[0];
    const box = useRef<HTMLDivElement>(null);
    const { first, last, measure } = useSeen(box, height, total);
    useEffect(() => onNear(last), [last, rows.length]);
    const seen = rows.slice(first, last);
    return (
        <div
            ref={box}
            class={`scroll virtual ${look}`}
            role="region"
            aria-label={caption}
            tabIndex={0}
            onScroll={measure}
        >
            <table aria-rowcount={total + 1}>
                <caption class="offscreen">{caption}</caption>
                <thead>
                    <tr>
                        {columns.map(({ key, title }) => (
                            <th key={key} scope="col" class={key}>
                                {title}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    <Space rows={first} height={height} />
                    {seen.map((row, index) => (
                        <tr key={keyOf(row)} aria-rowindex={first + index + 2}>
                            {columns.map(({ key, cell }) => (
                                <td key={key} class={key}>
                                    {cell(row)}
                                </td>
                            ))}
                        </tr>
                    ))}
                    <Space rows={total - first - seen.length} height={height} />
                </tbody>
            </table>
        </div>
    );
}

function Space({ rows, height }: { readonly rows: number; readonly height: number }) {
    return rows <= 0 ? null : (
        <tr class="space" aria-hidden="true" style={{ height: `${rows * height}px` }}>
            <td>
                <span class="offscreen">{t('Loading …')}</span>
            </td>
        </tr>
    );
}

function useSeen(
    box: { readonly current: HTMLDivElement | null },
    height: number,
    total: number
): { first: number; last: number; measure: () => void } {
    const [range, setRange] = useState({ first: 0, last: 40 });
    const measure = (): void => {
        const { scrollTop = 0, clientHeight = 0 } = box.current ?? {};
        const first = Math.max(0, Math.floor(scrollTop / height) - spare);
        const last = Math.min(total, Math.ceil((scrollTop + Math.max(clientHeight, 400)) / height) + spare);
        setRange((before) => (before.first === first && before.last === last ? before : { first, last }));
    };
    useEffect(() => {
        measure();
        window.addEventListener('resize', measure);
        return () => window.removeEventListener('resize', measure);
    }, [height, total]);
    return { ...range, measure };
}

function useIsNarrow(): boolean {
    const [isNarrow, setNarrow] = useState(() => matchMedia(narrow).matches);
    useEffect(() => {
        const query = matchMedia(narrow);
        const listen = (): void => setNarrow(query.matches);
        query.addEventListener('change', listen);
        return () => query.removeEventListener('change', listen);
    }, []);
    return isNarrow;
}
