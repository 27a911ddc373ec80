/** A part of a screen. */
import type { ComponentChildren } from 'preact';

/** A part of the screen with a title. */
export function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
    return (
        <section class="card" aria-label={title}>
            <h3>{title}</h3>
            {children}
        </section>
    );
}
