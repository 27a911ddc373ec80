/** A list of a screen: it is loaded, and loaded again after each change. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { tell } from './panel.ts';

/** Shows rows, or a sentence where there are none. */
export function List<Row extends { readonly id: number }>({
    read,
    empty,
    children
}: {
    readonly read: () => Promise<{ readonly data: readonly Row[] }>;
    readonly empty: string;
    /** One row. `change` runs the work, and reads the list again. */
    readonly children: (row: Row, change: (work: () => Promise<unknown>) => void) => ComponentChildren;
}) {
    const [rows, setRows] = useState<readonly Row[] | null>(null);
    const load = async (): Promise<void> => setRows((await read()).data);
    useEffect(() => void tell(load), []);
    const change = (work: () => Promise<unknown>): void =>
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
        <ul class="lines card">
            {rows.map((row) => (
                <li key={row.id} class="row spread">
                    {children(row, change)}
                </li>
            ))}
        </ul>
    );
}
