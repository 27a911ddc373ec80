/** What is told, bounded and without secrets, in the form in which it is kept and sent. */
import { randomBytes } from 'node:crypto';

import { maskKeys } from '../../../platform/log.ts';

const severities = ['info', 'warning', 'error'] as const;

export type Severity = (typeof severities)[number];

/** Something that a person should know of. */
export interface Notification {
    /** `noun.verb`, as `certificate.expiring`; a plugin's begin with its name. */
    readonly event: string;
    readonly severity: Severity;
    /** One line, at most 200 characters. */
    readonly title: string;
    /** At most 10,000 characters. */
    readonly text?: string;
    /** Plain data for programs, at most 32 KiB as JSON; what stands under a telling key is masked. */
    readonly data?: Readonly<Record<string, unknown>>;
}

/** A notification on its way, with the name by which its receiver knows it. */
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
        /** Null without any, or when there was too much of it. */
        readonly details: unknown;
    };
}

const longest = { event: 100, title: 200, text: 10_000, details: 32_768 } as const;

/** What can be kept and sent of what was told; what cannot is cut or left out. */
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

/** Lone surrogates would not survive UTF-8. */
function cut(text: string, length: number): string {
    return (text.length > length ? `${text.slice(0, length - 1)}…` : text).toWellFormed();
}
