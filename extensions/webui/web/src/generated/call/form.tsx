/** The dialog of an operation: what it asks for, the progress of its file, and what it answers. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { Text } from '../../kit/display/text.tsx';
import { FileField, fitting, typeOf } from '../../kit/forms/file-field.tsx';
import { SchemaForm } from '../../schema/form.tsx';
import { t } from '../../words/t.ts';
import type { Operation, Params } from '../operations.ts';
import { ask, run, save } from '../run.ts';
import { AnswerView } from './answer.tsx';
import { fieldsOf, hasFields, type Input, inputOf } from './input.ts';
import { Live } from './live.tsx';
import { Written } from './written.tsx';

/** The dialog. What is read can be asked again; what is done closes it, unless it answers a secret that is shown once. */
export function OperationForm({
    operation,
    params,
    version,
    onClose
}: {
    readonly operation: Operation;
    readonly params: Params;
    readonly version?: number | undefined;
    readonly onClose: () => void;
}) {
    const { kind, effect, title } = operation;
    const [input, setInput] = useState<Input | null>(
        kind === 'stream' && !hasFields(operation, params) ? inputOf(operation, params, {}) : null
    );
    const [answer, setAnswer] = useState<unknown>(null);
    const isQuestion = operation.method === 'GET';
    const upload = useUpload(operation);
    const isShown =
        effect === 'read' ||
        Object.values(operation.answer.properties ?? {}).some((each) => each.format === 'password');
    const send = async (values: Readonly<Record<string, unknown>>): Promise<void> => {
        const next = inputOf(operation, params, values);
        if (kind === 'stream') {
            setInput(next);
        } else if (kind === 'download') {
            await save(operation, next.params, next.query);
            onClose();
        } else if (isQuestion) {
            setAnswer(await ask(operation, next.params, next.query));
            setInput(next);
        } else if (operation.file === null || upload.isReady()) {
            const { data } = await run(operation, next.params, {
                query: next.query,
                version,
                ...(operation.file === null ? { body: next.body } : upload.options())
            });
            if (!isShown || data === null) {
                return onClose();
            }
            setAnswer(data);
            setInput(next);
        }
    };
    const isAsked = input === null || effect === 'read';
    return (
        <Dialog title={title} onClose={onClose} isWide>
            {isAsked ? <Lead operation={operation} /> : null}
            {isAsked && (kind !== 'stream' || input === null) ? (
                <SchemaForm
                    schema={fieldsOf(operation, params)}
                    initial={{}}
                    action={title}
                    onCancel={onClose}
                    onSend={send}
                >
                    {upload.field}
                </SchemaForm>
            ) : null}
            {input === null ? null : kind === 'stream' ? (
                <Stream operation={operation} input={input} />
            ) : (
                <AnswerView operation={operation} input={input} answer={answer} />
            )}
            {isAsked ? null : (
                <footer>
                    <Button look="primary" onPress={onClose}>
                        {t('Close')}
                    </Button>
                </footer>
            )}
        </Dialog>
    );
}

/** What the route says about itself, and the question before it does it. */
function Lead({ operation: { description, ui } }: { readonly operation: Operation }) {
    return (
        <>
            {ui.confirm === undefined ? null : <p class="lead">{t(ui.confirm)}</p>}
            {description === undefined ? null : (
                <p class="lead">
                    <Text text={description} />
                </p>
            )}
        </>
    );
}

/** A stream that is read is a log; one that answers a body is written piece by piece. */
function Stream({ operation, input }: { readonly operation: Operation; readonly input: Input }) {
    return operation.method === 'GET' ? (
        <Live operation={operation} params={input.params} query={input.query} />
    ) : (
        <Written operation={operation} input={input} />
    );
}

/** The file of an operation: its field, and what a request needs of it. Sending stops when the dialog closes. */
function useUpload({ file: rule }: Operation) {
    const [file, setFile] = useState<File | null>(null);
    const [isTried, setTried] = useState(false);
    const [sent, setSent] = useState<number | null>(null);
    const stop = useRef(new AbortController());
    useEffect(() => () => stop.current.abort(), []);
    const error = rule === null ? null : fitting(file, rule);
    return {
        field:
            rule === null ? null : (
                <FileField
                    rule={rule}
                    file={file}
                    error={isTried || file !== null ? error : null}
                    sent={sent}
                    onChange={setFile}
                />
            ),
        isReady(): boolean {
            setTried(true);
            return error === null;
        },
        options: () => ({
            bytes: file ?? undefined,
            headers: { 'content-type': typeOf(file, rule?.accepts ?? []) },
            signal: stop.current.signal,
            onProgress: setSent
        })
    };
}
