/** Turns a notification into the message that is stored and sent: bounded, and without secrets. */
import { randomBytes } from 'node:crypto';

import type { Notification } from '@portico/sdk';

import { maskKeys } from '../../../platform/log/log.ts';

/** How serious a notification is. */
export type Severity = Notification['severity'];

const severities: readonly Severity[] = ['info', 'warning', 'error'];

/** A notification on its way to a receiver. `id` is the same for every attempt. */
export interface Message {
    readonly id: string;
    readonly event: string;
    readonly severity: Severity;
    readonly title: string;
    /** JSON. */
    readonly body: string;
}

/** What `body` holds: the payload that the Standard Webhooks specification recommends. */
export interface Payload {
    readonly type: string;
    /** When it happened: RFC 3339, UTC, milliseconds. */
    readonly timestamp: string;
    readonly data: {
        readonly severity: Severity;
        readonly title: string;
        readonly text: string | null;
        /** Null when there are none, or too many. */
        readonly details: unknown;
    };
}

const longest = { event: 100, title: 200, text: 10_000, details: 32_768 } as const;

/** The message of a notification. Texts that are too long are cut, and data that is too large is left out. */
export function compose(notification: Notification, now: number): Omit<Message, 'id'> {
    const event = cut(String(notification.event), longest.event);
    const title = cut(
        String(notification.title)
            .replace(/\p{Cc}+/gu, ' ')
            .trim(),
        longest.title
    );
    const text = notification.text === undefined ? null : cut(String(notification.text), longest.text);
    const severity = severities.includes(notification.severity) ? notification.severity : 'info';
    const payload: Payload = {
        type: event,
        timestamp: new Date(now).toISOString(),
        data: { severity, title, text, details: detailsOf(notification.data) }
    };
    return { event, severity, title, body: JSON.stringify(payload) };
}

/** A new message id. */
export function messageId(): string {
    return `msg_${randomBytes(16).toString('hex')}`;
}

function detailsOf(data: unknown): unknown {
    if (data === undefined || data === null) {
        return null;
    }
    try {
        const text = JSON.stringify(maskKeys(data)) as string | undefined;
        return text === undefined || text.length > longest.details ? null : (JSON.parse(text) as unknown);
    } catch {
        return null;
    }
}

/** Cuts a text to a length. Lone surrogates are replaced, since UTF-8 cannot hold them. */
function cut(text: string, length: number): string {
    return (text.length > length ? `${text.slice(0, length - 1)}…` : text).toWellFormed();
}
