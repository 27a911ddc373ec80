/** E-mail over SMTP. The outbound client makes the connection, so that mail servers are under the same rules as every other address. */
import { getCACertificates } from 'node:tls';

import type { Outbound } from '../../../platform/outbound/client.ts';
import type { Message, Payload } from './message.ts';
import { type Attempt, excerpt, type Sender } from './sender.ts';

/** How a connection to a mail server is encrypted. */
export type EmailSecurity = 'none' | 'starttls' | 'tls';

/** The fields of an e-mail channel. */
export interface EmailFields {
    readonly host: string;
    readonly port: number;
    readonly security: EmailSecurity;
    /** Null when the server needs none. */
    readonly username: string | null;
    readonly from: string;
    readonly to: readonly string[];
}

/** One address, without a name: `root@localhost` too. */
export const addressPattern =
    /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/;
/** An address, or a name and an address in angle brackets. */
export const senderPattern =
    /^(?:[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[^\u0000-\u001f\u007f"<>@,;:\\()[\]]{1,100} <[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?>)$/;
/** The usual port for each kind of connection (RFC 8314, RFC 6409, RFC 5321). */
export const usualPorts: Readonly<Record<EmailSecurity, number>> = { tls: 465, starttls: 587, none: 25 };

const connectMs = 10_000;
const silenceMs = 10_000;
const mostResponseBytes = 65_536;

/** An error of nodemailer. */
interface SmtpFailure {
    readonly message?: string;
    readonly responseCode?: number;
    readonly response?: string;
}

/** Builds the sender of e-mail channels. `ca`: PEM of authorities to trust in addition to those of the system. */
export function createEmailSender({
    outbound,
    ca
}: {
    readonly outbound: Pick<Outbound, 'connect'>;
    readonly ca: readonly string[];
}): Sender<EmailFields> {
    return async (fields, secret, message, signal) => {
        const { host, port, security, username } = fields;
        const trust = ca.length === 0 ? {} : { ca };
        const socket = await outbound.connect(host, port, {
            tls: security === 'tls',
            timeoutMs: connectMs,
            signal,
            ...trust
        });
        // Without a listener, an error before nodemailer adds its own would end the process.
        socket.on('error', () => undefined);
        const aborted = (): void => void socket.destroy();
        signal.addEventListener('abort', aborted);
        try {
            signal.throwIfAborted();
            // Loaded with the first message: a panel that sends none does not keep its 40 modules.
            const { createTransport } = await import('nodemailer');
            const transport = createTransport({
                connection: socket,
                host,
                port,
                secure: security === 'tls',
                secured: security === 'tls',
                requireTLS: security === 'starttls',
                ignoreTLS: security === 'none',
                connectionTimeout: connectMs,
                greetingTimeout: silenceMs,
                socketTimeout: silenceMs,
                maxResponseSize: mostResponseBytes,
                disableFileAccess: true,
                disableUrlAccess: true,
                tls: {
                    rejectUnauthorized: true,
                    ...(ca.length === 0 ? {} : { ca: [...getCACertificates('default'), ...ca] })
                },
                ...(username === null ? {} : { auth: { user: username, pass: secret ?? '' } })
            });
            const sent = await transport.sendMail(mailOf(fields, message));
            return {
                ok: true,
                status: codeOf(sent.response),
                error:
                    sent.rejected.length === 0
                        ? null
                        : `The server does not take mail for ${sent.rejected.join(', ')}`,
                response: excerpt(sent.response)
            };
        } catch (error) {
            signal.throwIfAborted();
            return failed(error as SmtpFailure, [secret ?? '', `\u0000${username}\u0000${secret}`]);
        } finally {
            signal.removeEventListener('abort', aborted);
            socket.destroy();
        }
    };
}

function mailOf({ from, to }: EmailFields, message: Message) {
    const { timestamp, data } = JSON.parse(message.body) as Payload;
    const about = [
        `Event: ${message.event}`,
        `Severity: ${message.severity}`,
        `Time: ${timestamp}`,
        ...(data.details === null ? [] : [`Details: ${JSON.stringify(data.details, null, 2)}`])
    ];
    const domain = /@([^>]+)/.exec(from)?.[1] ?? 'localhost';
    return {
        from,
        to: [...to],
        subject: `[Portico] ${message.title}`,
        date: new Date(timestamp),
        messageId: `<${message.id}@${domain}>`,
        // Keeps automatic replies away (RFC 3834).
        headers: { 'Auto-Submitted': 'auto-generated' },
        text: [message.title, ...(data.text === null ? [] : [data.text]), about.join('\n')].join('\n\n')
    };
}

/** A failed attempt. A server may repeat what it was sent, so the secrets are removed from its answer. */
function failed(
    { message = 'for an unknown reason', responseCode, response }: SmtpFailure,
    secrets: readonly string[]
): Attempt {
    const spellings = secrets
        .filter((secret) => secret !== '')
        .flatMap((secret) => [secret, Buffer.from(secret).toString('base64')]);
    const clean = (text: string): string =>
        spellings.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);
    return {
        ok: false,
        status: responseCode ?? null,
        error: excerpt(clean(`The mail could not be handed over: ${message}`)),
        response: excerpt(clean(response ?? ''))
    };
}

function codeOf(response: string): number | null {
    const code = Number(/^\d{3}/.exec(response)?.[0]);
    return Number.isNaN(code) ? null : code;
}
