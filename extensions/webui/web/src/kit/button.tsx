import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

/** A button. While the work that it began is under way, it cannot be pressed again. */
export function Button({
    children,
    onPress,
    look = 'plain',
    type = 'button',
    label,
    isDisabled = false,
    isSending = false
}: {
    readonly children: ComponentChildren;
    readonly onPress?: () => unknown;
    readonly look?: 'plain' | 'primary' | 'danger' | 'quiet';
    readonly type?: 'button' | 'submit';
    /** What it does, where its content is a sign. */
    readonly label?: string;
    readonly isDisabled?: boolean;
    /** The form that it sends is under way. It keeps the focus, which a button that is disabled loses. */
    readonly isSending?: boolean;
}) {
    const [isBusy, setBusy] = useState(false);
    const press = async (): Promise<void> => {
        setBusy(true);
        await Promise.resolve(onPress?.()).finally(() => setBusy(false));
    };
    return (
        <button
            type={type}
            class={`button ${look}`}
            disabled={isDisabled || isBusy}
            aria-busy={isBusy || isSending}
            aria-disabled={isSending}
            {...(label === undefined ? {} : { 'aria-label': label, title: label })}
            {...(onPress === undefined ? {} : { onClick: () => void press() })}
        >
            {children}
        </button>
    );
}
