import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

import { Icon } from './icon.tsx';

/** A button that opens a small menu, on the native popover: Escape and a click elsewhere close it. */
export function Menu({
    label,
    children
}: {
    /** What the menu is for; it has the name of its thing. */
    readonly label: string;
    readonly children: ComponentChildren;
}) {
    const id = useId();
    const list = useRef<HTMLDivElement>(null);
    return (
        <>
            <button
                type="button"
                class="button quiet"
                aria-label={label}
                title={label}
                // The types know no `popovertarget` yet.
                {...{ popovertarget: id }}
            >
                <Icon name="more" />
            </button>
            <div ref={list} id={id} popover="auto" class="menu" onClick={() => list.current?.hidePopover()}>
                {children}
            </div>
        </>
    );
}
