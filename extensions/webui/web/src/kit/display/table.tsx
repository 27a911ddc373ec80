import type { ComponentChildren } from 'preact';

import { t } from '../../words/t.ts';
import { Icon } from '../icon.tsx';

/** One column of a table. */
export interface TableColumn<Row> {
    readonly key: string;
    readonly title: string;
    readonly cell: (row: Row) => ComponentChildren;
}

/** A table that scrolls in its own region; on a narrow screen each row is a card. */
export function Table<Row>({
    caption,
    columns,
    rows,
    keyOf,
    actions,
    empty = t('Nothing here yet'),
    icon = 'layout',
    firstStep
}: {
    readonly caption: string;
    readonly columns: readonly TableColumn<Row>[];
    readonly rows: readonly Row[];
    readonly keyOf: (row: Row) => string;
    readonly actions?: (row: Row) => ComponentChildren;
    /** Said where there is no row, with a sign and what to do first. */
    readonly empty?: string;
    readonly icon?: string;
    readonly firstStep?: ComponentChildren;
}) {
    if (rows.length === 0) {
        return (
            <div class="empty">
                <Icon name={icon} />
                <p>{empty}</p>
                {firstStep}
            </div>
        );
    }
    return (
        <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
            <table>
                <caption class="offscreen">{caption}</caption>
                <thead>
                    <tr>
                        {columns.map(({ key, title }) => (
                            <th key={key} scope="col">
                                {title}
                            </th>
                        ))}
                        {actions === undefined ? null : (
                            <th scope="col">
                                <span class="offscreen">{t('Actions')}</span>
                            </th>
                        )}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row) => (
                        <tr key={keyOf(row)}>
                            {columns.map(({ key, title, cell }) => (
                                <td key={key} data-title={title}>
                                    {cell(row)}
                                </td>
                            ))}
                            {actions === undefined ? null : <td class="actions">{actions(row)}</td>}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
