import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import type { ApiFailure } from '../api/failure.ts';
import { t } from '../words/t.ts';
import { CopyButton } from './copy.tsx';

/** A screen: one heading, which gets the focus when the user comes here, and the document's title. */
export function Page({
    title,
    lead,
    actions,
    notice,
    children
}: {
    readonly title: string;
    readonly lead?: ComponentChildren;
    readonly actions?: ComponentChildren;
    /** What the user must know before anything else on the page. */
    readonly notice?: string | undefined;
    readonly children: ComponentChildren;
}) {
    const heading = useRef<HTMLHeadingElement>(null);
    useEffect(() => {
        document.title = `${title} · Portico`;
        heading.current?.focus();
    }, [title]);
    return (
        <main id="main">
            <header class="page">
                <div>
                    <h1 ref={heading} tabIndex={-1}>
                        {title}
                    </h1>
                    {lead === undefined ? null : <p class="lead">{lead}</p>}
                </div>
                {actions === undefined ? null : <div class="row">{actions}</div>}
            </header>
            {notice === undefined ? null : (
                <p class="notice" role="status">
                    {notice}
                </p>
            )}
            {children}
        </main>
    );
}

/** What is shown instead of an answer: that it is coming, or why it does not. */
export function Waiting({ error }: { readonly error: ApiFailure | null }) {
    if (error === null) {
        return (
            <p class="waiting" aria-busy="true">
                {t('Loading …')}
            </p>
        );
    }
    const install = error.data['install'];
    return (
        <div class="failure" role="alert">
            <p>{error.message}</p>
            {typeof install === 'string' ? (
                <p class="row">
                    <code>{install}</code>
                    <CopyButton text={install} />
                </p>
            ) : null}
            {error.requestId === null ? null : <small>{t('Request {id}', { id: error.requestId })}</small>}
        </div>
    );
}
