/** A dialog that asks for a name. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from './words.ts';

/** What is asked. */
export interface Question {
    readonly label: string;
    readonly action: string;
    readonly value: string;
    /** Resolves with false when it did not work, and the dialog stays. */
    readonly onSend: (value: string) => Promise<boolean>;
}

/** Asks. */
export function Ask({ label, action, value, onSend, onClose }: Question & { readonly onClose: () => void }) {
    const dialog = useRef<HTMLDialogElement>(null);
    const [text, setText] = useState(value);
    useEffect(() => dialog.current?.showModal(), []);
    const send = async (): Promise<void> => {
        if (text !== '' && (await onSend(text))) {
            onClose();
        }
    };
    return (
        <dialog ref={dialog} aria-label={label} onCancel={onClose}>
            {/* A frame of a plugin sends no form, so the key is heard here. */}
            <label>
                {label}
                <input
                    value={text}
                    maxLength={255}
                    onInput={(event) => setText(event.currentTarget.value)}
                    onKeyDown={(event) => (event.key === 'Enter' ? void send() : undefined)}
                />
            </label>
            <div class="row end">
                <button type="button" onClick={onClose}>
                    {t('Cancel')}
                </button>
                <button type="button" class="primary" onClick={() => void send()}>
                    {action}
                </button>
            </div>
        </dialog>
    );
}
