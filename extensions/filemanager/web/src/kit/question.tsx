/** A dialog that asks for what an action needs. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from '../words.ts';

/** One thing that is asked for. */
export interface Field {
    readonly label: string;
    readonly value: string;
    /** What it can be; else it is a text. */
    readonly options?: readonly { readonly value: string; readonly title: string }[];
    readonly type?: 'text' | 'url' | 'number' | 'date';
    readonly isOptional?: boolean;
}

/** A dialog that asks the user for values before an action. */
export interface Question<Name extends string = string> {
    readonly title: string;
    readonly action: string;
    readonly fields: Readonly<Record<Name, Field>>;
    /** Resolves with false when it did not work, and the dialog stays. */
    readonly onSend: (values: Readonly<Record<Name, string>>) => Promise<boolean>;
}

/** Opens a dialog that asks the user for values. */
export type Asker = (question: Question) => void;

/** A question for one text, which is its title, too. */
export function askText(
    title: string,
    action: string,
    value: string,
    onSend: (text: string) => Promise<boolean>
): Question {
    return {
        title,
        action,
        fields: { text: { label: title, value } },
        onSend: ({ text = '' }) => onSend(text)
    };
}

/** Shows the dialog of a question, and sends what the user gave. */
export function Ask({ title, action, fields, onSend, onClose }: Question & { readonly onClose: () => void }) {
    const dialog = useRef<HTMLDialogElement>(null);
    const all = Object.entries(fields);
    const [values, setValues] = useState(Object.fromEntries(all.map(([name, { value }]) => [name, value])));
    const [isSending, setSending] = useState(false);
    useEffect(() => dialog.current?.showModal(), []);
    const isWhole = all.every(([name, { isOptional }]) => isOptional === true || values[name] !== '');
    const send = async (): Promise<void> => {
        if (!isWhole || isSending) {
            return;
        }
        setSending(true);
        if (await onSend(values)) {
            onClose();
        } else {
            setSending(false);
        }
    };
    return (
        <dialog ref={dialog} aria-label={title} onCancel={onClose}>
            {all.length > 1 ? <h2>{title}</h2> : null}
            {all.map(([name, field]) => (
                <AskedField
                    key={name}
                    field={field}
                    value={values[name] ?? ''}
                    set={(value) => setValues({ ...values, [name]: value })}
                    send={() => void send()}
                />
            ))}
            <div class="row end">
                <button type="button" onClick={onClose}>
                    {t('Cancel')}
                </button>
                <button type="button" class="primary" disabled={isSending} onClick={() => void send()}>
                    {action}
                </button>
            </div>
        </dialog>
    );
}

function AskedField({
    field: { label, options, type = 'text' },
    value,
    set,
    send
}: {
    readonly field: Field;
    readonly value: string;
    readonly set: (value: string) => void;
    readonly send: () => void;
}) {
    return (
        <label>
            {label}
            {options === undefined ? (
                // A frame of a plugin sends no form, so the key is heard here.
                <input
                    type={type}
                    value={value}
                    maxLength={4096}
                    onInput={(event) => set(event.currentTarget.value)}
                    onKeyDown={(event) => (event.key === 'Enter' ? send() : undefined)}
                />
            ) : (
                <select value={value} onChange={(event) => set(event.currentTarget.value)}>
                    {options.map((each) => (
                        <option key={each.value} value={each.value}>
                            {each.title}
                        </option>
                    ))}
                </select>
            )}
        </label>
    );
}
