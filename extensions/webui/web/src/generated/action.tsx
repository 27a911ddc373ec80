/** A button for an operation: with a form when it has a body, with a question when it destroys. */
import { useState } from 'preact/hooks';

import { useMay } from '../api/queries.ts';
import { Button } from '../kit/button.tsx';
import { Dialog } from '../kit/dialog.tsx';
import { Text } from '../kit/text.tsx';
import { Json, Value } from '../kit/value.tsx';
import { filled } from '../schema/changes.ts';
import { SchemaForm } from '../schema/form.tsx';
import { t } from '../words/t.ts';
import type { Operation, Params } from './operations.ts';
import { download, press, run } from './run.ts';

/** Whether an operation asks for something before it is called. */
export const hasFields = ({ body }: Operation): boolean => Object.keys(body?.properties ?? {}).length > 0;

/** The button; nothing for a user who lacks the permission. */
export function Action({
    operation,
    params = {},
    version
}: {
    readonly operation: Operation;
    readonly params?: Params;
    readonly version?: number | undefined;
}) {
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    if (!may(operation.permission)) {
        return null;
    }
    const look =
        operation.effect === 'destructive' ? 'danger' : operation.ui.primary === true ? 'primary' : 'plain';
    return (
        <>
            <Button
                look={look}
                onPress={() => (hasFields(operation) ? setOpen(true) : press(operation, params, version))}
            >
                {operation.title}
            </Button>
            {isOpen ? (
                <OperationForm operation={operation} params={params} onClose={() => setOpen(false)} />
            ) : null}
        </>
    );
}

/** A button that downloads. */
export function Download({
    operation,
    params = {}
}: {
    readonly operation: Operation;
    readonly params?: Params;
}) {
    return <Button onPress={() => download(operation, params)}>{operation.title}</Button>;
}

/** The form of an operation in a dialog. What it answers is shown when there is something to read. */
export function OperationForm({
    operation,
    params,
    onClose
}: {
    readonly operation: Operation;
    readonly params: Params;
    readonly onClose: () => void;
}) {
    const [answer, setAnswer] = useState<unknown>(null);
    const isShown =
        operation.effect === 'read' ||
        Object.values(operation.answer.properties ?? {}).some((each) => each.format === 'password');
    return (
        <Dialog title={operation.title} onClose={onClose} isWide>
            {operation.description === undefined ? null : (
                <p class="lead">
                    <Text text={operation.description} />
                </p>
            )}
            {answer === null ? (
                <SchemaForm
                    schema={operation.body ?? {}}
                    initial={{}}
                    action={operation.title}
                    onCancel={onClose}
                    onSend={async (value) => {
                        const { data } = await run(operation, params, { body: filled(value) });
                        if (isShown && data !== null) {
                            setAnswer(data);
                        } else {
                            onClose();
                        }
                    }}
                />
            ) : (
                <>
                    {typeof answer === 'object' ? (
                        <Value value={answer} schema={operation.answer} />
                    ) : (
                        <Json value={answer} />
                    )}
                    <footer>
                        <Button look="primary" onPress={onClose}>
                            {t('Close')}
                        </Button>
                    </footer>
                </>
            )}
        </Dialog>
    );
}
