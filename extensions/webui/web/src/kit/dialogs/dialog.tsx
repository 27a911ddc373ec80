import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

import { t } from '../../words/t.ts';
import { Button } from '../button.tsx';
import { Icon } from '../icon.tsx';

/** A modal dialog on the native element: it keeps the focus, and gives it back. */
export function Dialog({
    title,
    children,
    onClose,
    isWide = false,
    isCurtain = false
}: {
    readonly title: string;
    readonly children: ComponentChildren;
    readonly onClose: () => void;
    readonly isWide?: boolean;
    /** Nothing of the page is seen behind it. */
    readonly isCurtain?: boolean;
}) {
    const element = useRef<HTMLDialogElement>(null);
    const id = useId();
    useEffect(() => {
        const dialog = element.current;
        dialog?.showModal();
        return () => dialog?.close();
    }, []);
    return (
        <dialog
            ref={element}
            aria-labelledby={id}
            class={isWide ? 'wide' : isCurtain ? 'curtain' : ''}
            onCancel={(event) => {
                event.preventDefault();
                onClose();
            }}
        >
            <header>
                <h2 id={id}>{title}</h2>
                <Button look="quiet" label={t('Close')} onPress={onClose}>
                    <Icon name="close" />
                </Button>
            </header>
            {children}
        </dialog>
    );
}
