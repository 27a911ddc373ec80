/** A real mail server on the loopback address, with or without TLS and accounts. It keeps the messages that it receives. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

import { selfSigned } from './self-signed.ts';

export interface Mail {
    readonly from: string;
    readonly to: readonly string[];
    /** Headers and body as they were received. */
    readonly text: string;
    readonly secure: boolean;
    readonly user: string | null;
}

export interface MailServer {
    readonly port: number;
    readonly mails: Mail[];
    /** Every attempt to log in: the user name, and whether the connection was encrypted. */
    readonly logins: string[];
    /** Certificate in PEM; valid for 127.0.0.1. */
    readonly certificate: string;
    close(): Promise<void>;
}

export interface MailServerOptions {
    readonly security: 'none' | 'starttls' | 'tls';
    /** Name and password of the only account; null: clients need none. */
    readonly account?: readonly [string, string] | null;
    /** Recipients that are refused. */
    readonly refuses?: readonly string[];
}

export async function openMailServer({
    security,
    account = null,
    refuses = []
}: MailServerOptions): Promise<MailServer> {
    const { key, certificate } = selfSigned(['127.0.0.1']);
    const mails: Mail[] = [];
    const logins: string[] = [];
    const options: SMTPServerOptions = {
        secure: security === 'tls',
        key,
        cert: certificate,
        disableReverseLookup: true,
        logger: false,
        closeTimeout: 100,
        authOptional: account === null,
        allowInsecureAuth: security === 'none',
        disabledCommands: [
            ...(security === 'starttls' ? [] : ['STARTTLS']),
            ...(account === null ? ['AUTH'] : [])
        ],
        onAuth({ username = '', password = '' }, session, done) {
            logins.push(`${username} ${session.secure ? 'encrypted' : 'in the clear'}`);
            // Some servers repeat the password in their error.
            if (username === account?.[0] && password === account[1]) {
                done(null, { user: username });
            } else {
                done(new Error(`Wrong: ${password} ${Buffer.from(password ?? '').toString('base64')}`));
            }
        },
        onRcptTo: ({ address }, _session, done) =>
            done(refuses.includes(address) ? new Error(`No mailbox ${address}`) : null),
        onData(stream, session, done) {
            const chunks: Buffer[] = [];
            stream
                .on('data', (chunk: Buffer) => chunks.push(chunk))
                .once('end', () => {
                    const { mailFrom, rcptTo } = session.envelope;
                    mails.push({
                        from: mailFrom === false ? '' : (mailFrom?.address ?? ''),
                        to: rcptTo.map(({ address }) => address),
                        text: Buffer.concat(chunks).toString(),
                        secure: session.secure,
                        user: (session.user as string | undefined) ?? null
                    });
                    done(null, 'taken');
                });
        }
    };
    const server = new SMTPServer(options);
    server.on('error', () => undefined); // tests end connections early
    server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
    return {
        port: (server.server.address() as AddressInfo).port,
        mails,
        logins,
        certificate,
        close: () => new Promise((resolve) => server.close(() => resolve()))
    };
}
