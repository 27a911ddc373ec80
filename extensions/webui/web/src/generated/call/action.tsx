/** A button for an operation: with a form when it asks for something, with a question when it destroys. */
import { useState } from 'preact/hooks';

import { useMay } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import type { Operation, Params } from '../operations.ts';
import { press } from '../run.ts';
import { OperationForm } from './form.tsx';
import { hasFields } from './input.ts';

/** The button; nothing for a user who lacks the permission. */
export function Action({
    operation,
    params = {},
    version,
    title = operation.title,
    look = lookOf(operation)
}: {
    readonly operation: Operation;
    readonly params?: Params;
    readonly version?: number | undefined;
    readonly title?: string;
    readonly look?: 'plain' | 'primary' | 'danger';
}) {
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    if (!may(operation.permission)) {
        return null;
    }
    return (
        <>
            <Button
                look={look}
                onPress={() =>
                    needsForm(operation, params) ? setOpen(true) : press(operation, params, version)
                }
            >
                {title}
            </Button>
            {isOpen ? (
                <OperationForm
                    operation={operation}
                    params={params}
                    version={version}
                    onClose={() => setOpen(false)}
                />
            ) : null}
        </>
    );
}

/** Whether an operation opens a dialog: it asks for something, or what it answers comes piece by piece. */
export const needsForm = (operation: Operation, params: Params): boolean =>
    operation.kind === 'stream' || hasFields(operation, params);

const lookOf = ({ effect, ui }: Operation): 'plain' | 'primary' | 'danger' =>
    effect === 'destructive' ? 'danger' : ui.primary === true ? 'primary' : 'plain';
