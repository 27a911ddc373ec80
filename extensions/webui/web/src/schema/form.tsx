/** A form from a schema, with its buttons and failures. */
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

import { ApiFailure } from '../api/failure.ts';
import { Button } from '../kit/button.tsx';
import { useSubmit } from '../kit/forms/once.ts';
import { t } from '../words/t.ts';
import { Properties } from './fields.tsx';
import { assertJson } from './raw-json.ts';
import type { Schema } from './schema.ts';

type Values = Readonly<Record<string, unknown>>;

/** The control of a field that says what is wrong with it. */
const wrongField = ['input', 'select', 'textarea', '.code']
    .map((control) => `.field:has(> em) ${control}`)
    .join();

/** A form with its buttons. Failures of the panel stand at their fields; the first of them gets the focus. */
export function SchemaForm({
    schema,
    initial,
    action,
    onSend,
    onCancel,
    children
}: {
    readonly schema: Schema;
    readonly initial: Values;
    readonly action: string;
    /** Sends the value. @throws ApiFailure, which is shown */
    readonly onSend: (value: Values) => Promise<void>;
    readonly onCancel?: () => void;
    /** Fields of another kind; they stand above those of the schema. */
    readonly children?: ComponentChildren;
}) {
    const [value, setValue] = useState<Values>(initial);
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const form = useRef<HTMLFormElement>(null);
    const send = async (): Promise<void> => {
        try {
            setFailure(null);
            assertJson(value);
            await onSend(value);
        } catch (error) {
            if (!(error instanceof ApiFailure)) {
                throw error;
            }
            setFailure(error);
            setTimeout(() => form.current?.querySelector<HTMLElement>(wrongField)?.focus());
        }
    };
    const { isBusy, onSubmit } = useSubmit(send);
    const errors = failure?.fields ?? {};
    // What stands at no field of this form is told below them all.
    const others = Object.entries(errors).filter(
        ([path]) => schema.properties?.[path.split('.')[0] ?? ''] === undefined
    );
    const untold = others.filter(([, text]) => failure?.message.includes(text) === false);
    const hasOwnPlace = Object.keys(errors).length > 0 && others.length === 0;
    return (
        <form ref={form} noValidate onSubmit={onSubmit}>
            {children}
            <Properties schema={schema} value={value} errors={errors} onChange={setValue} />
            {failure === null ? null : (
                <div class="failure" role="alert">
                    <p>{hasOwnPlace ? t('See what is said at the fields.') : failure.message}</p>
                    {untold.map(([path, text]) => (
                        <p key={path}>{text}</p>
                    ))}
                    {failure.requestId === null ? null : (
                        <small>{t('Request {id}', { id: failure.requestId })}</small>
                    )}
                </div>
            )}
            <footer>
                {onCancel === undefined ? null : <Button onPress={onCancel}>{t('Cancel')}</Button>}
                <Button look="primary" type="submit" isSending={isBusy}>
                    {action}
                </Button>
            </footer>
        </form>
    );
}
