/** What can be done beside a heading: what stands out as buttons, the rest in a menu. */
import { useState } from 'preact/hooks';

import { useMay } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Menu } from '../../kit/menu.tsx';
import { t } from '../../words/t.ts';
import type { Operation, Params } from '../operations.ts';
import { press } from '../run.ts';
import { Action, needsForm } from './action.tsx';
import { OperationForm } from './form.tsx';

/** More buttons than this in a row hide what matters. */
const most = 3;

/** The actions and downloads of a page or an item. */
export function Actions({
    operations,
    params = {},
    version,
    name
}: {
    readonly operations: readonly Operation[];
    readonly params?: Params;
    readonly version?: number | undefined;
    /** What they belong to; the menu is named by it. */
    readonly name: string;
}) {
    const may = useMay();
    const [opened, setOpened] = useState<Operation | null>(null);
    const offered = operations.filter(({ permission }) => may(permission)).toSorted(byWeight);
    const shown = offered.slice(0, offered.length <= most ? most : most - 1);
    const rest = offered.filter((each) => !shown.includes(each));
    const choose = (operation: Operation): unknown =>
        needsForm(operation, params) ? setOpened(operation) : press(operation, params, version);
    return (
        <>
            {shown.map((each) => (
                <Action key={each.id} operation={each} params={params} version={version} />
            ))}
            {rest.length === 0 ? null : (
                <Menu label={t('Actions for {name}', { name })}>
                    {rest.map((each) => (
                        <Button
                            key={each.id}
                            look={each.effect === 'destructive' ? 'danger' : 'plain'}
                            onPress={() => choose(each)}
                        >
                            {each.title}
                        </Button>
                    ))}
                </Menu>
            )}
            {opened === null ? null : (
                <OperationForm
                    operation={opened}
                    params={params}
                    version={version}
                    onClose={() => setOpened(null)}
                />
            )}
        </>
    );
}

/** What the author calls primary first, what destroys last. */
const byWeight = (left: Operation, right: Operation): number => weight(left) - weight(right);
const weight = ({ ui, effect, kind }: Operation): number =>
    (ui.primary === true ? 0 : 10) + (effect === 'destructive' ? 4 : 0) + (kind === 'download' ? 1 : 0);
