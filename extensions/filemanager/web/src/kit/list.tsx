/** A list of a screen: it is loaded, and loaded again after each change. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { tell } from '../panel.ts';

/** Runs the work, and reads the list again. */
type Change = (work: () => Promise<unknown>) => void;

/** Shows rows, or a sentence where there are none. */
export function List<Row extends { readonly id: number }>({
    read,
    empty,
    tools,
    children
}: {
    readonly read: () => Promise<{ readonly data: readonly Row[] }>;
    readonly empty: string;
    /** Above the rows. */
    readonly tools?: (rows: readonly Row[], change: Change) => ComponentChildren;
    /** One row. */
    readonly children: (row: Row, change: Change) => ComponentChildren;
}) {
    const [rows, setRows] = useState<readonly Row[] | null>(null);
    const load = async (): Promise<void> => setRows((await read()).data);
    useEffect(() => void tell(load), []);
    const change: Change = (work) =>
        void tell(async () => {
            await work();
            await load();
        });
    if (rows === null) {
        return null;
    }
    return rows.length === 0 ? (
        <p class="dim">{empty}</p>
    ) : (
        <>
            {tools === undefined ? null : <div class="tools">{tools(rows, change)}</div>}
            <ul class="lines card">
                {rows.map((row) => (
                    <li key={row.id} class="row spread">
                        {children(row, change)}
                    </li>
                ))}
            </ul>
        </>
    );
}
