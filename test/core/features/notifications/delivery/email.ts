import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    addressPattern,
    createEmailSender,
    type EmailFields,
    senderPattern
} from '../../../../../core/src/features/notifications/delivery/email.ts';
import { compose, type Message } from '../../../../../core/src/features/notifications/delivery/message.ts';
import type { Attempt } from '../../../../../core/src/features/notifications/delivery/sender.ts';
import { Outbound } from '../../../../../core/src/platform/outbound/client.ts';
import { type MailServer, type MailServerOptions, openMailServer } from '../../../../support/servers/mail.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, describe, it } = lab;

const outbound = new Outbound({ allow: () => ['127.0.0.0/8'], log: { warn: () => undefined } });
const password = 'canary-päss word';
let server: MailServer | null = null;
let other: Server | null = null;
const sockets = new Set<Socket>();

const message = (more: Partial<Parameters<typeof compose>[0]> = {}): Message => ({
    id: 'msg_1',
    ...compose(
        {
            event: 'certificate.expiring',
            severity: 'warning',
            title: 'Ein Zertifikat läuft ab',
            text: 'In 7 days.\n.\nSee to it.',
            data: { names: ['a.example'] },
            ...more
        },
        Date.UTC(2026, 0, 15, 12)
    )
});

async function serve(options: MailServerOptions): Promise<MailServer> {
    server = await openMailServer(options);
    return server;
}

function send(
    port: number,
    more: Partial<EmailFields> = {},
    options: {
        readonly secret?: string | null;
        readonly message?: Message;
        readonly signal?: AbortSignal;
        readonly ca?: readonly string[];
    } = {}
): Promise<Attempt> {
    const sender = createEmailSender({
        outbound,
        ca: options.ca ?? (server === null ? [] : [server.certificate])
    });
    const fields: EmailFields = {
        host: '127.0.0.1',
        port,
        security: 'none',
        username: null,
        from: 'Portico <panel@portico.example>',
        to: ['ops@portico.example'],
        ...more
    };
    return sender(
        fields,
        options.secret ?? null,
        options.message ?? message(),
        options.signal ?? new AbortController().signal
    );
}

/** A server that says what a test tells it to, one answer a line. */
async function speak(
    answer: (line: string, socket: Socket) => string | null,
    greeting = '220 hello'
): Promise<number> {
    other = createServer((socket) => {
        sockets.add(socket);
        socket
            .on('error', () => undefined)
            .setEncoding('utf8')
            .on('data', (text: string) => {
                for (const line of text.split('\r\n').filter((each) => each !== '')) {
                    const said = answer(line, socket);
                    if (said !== null) {
                        socket.write(`${said}\r\n`);
                    }
                }
            });
        if (greeting !== '') {
            socket.write(`${greeting}\r\n`);
        }
    });
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    return (other.address() as AddressInfo).port;
}

afterEach(async () => {
    await server?.close();
    sockets.forEach((socket) => socket.destroy());
    sockets.clear();
    if (other !== null) {
        other.close();
        await once(other, 'close');
    }
    server = null;
    other = null;
});

describe('createEmailSender', () => {
    it('hands a mail over, with a name that stays the same', async () => {
        const { port, mails } = await serve({ security: 'none' });
        expect(await send(port, { to: ['ops@portico.example', 'root@localhost'] })).to.include({
            ok: true,
            status: 250,
            error: null
        });
        expect(mails).to.have.length(1);
        expect(mails[0]).to.include({
            from: 'panel@portico.example',
            to: ['ops@portico.example', 'root@localhost'],
            secure: false,
            user: null
        });
        const [head = '', ...body] = (mails[0]?.text ?? '').split('\r\n\r\n');
        const headers = head.replace(/\r\n\s+/g, ' ').split('\r\n');
        expect(headers).to.include([
            'From: Portico <panel@portico.example>',
            'To: ops@portico.example, root@localhost',
            'Message-ID: <msg_1@portico.example>',
            'Auto-Submitted: auto-generated',
            'Date: Thu, 15 Jan 2026 12:00:00 +0000'
        ]);
        expect(headers.find((each) => each.startsWith('Subject: '))).to.match(
            /^Subject: \[Portico\] =\?UTF-8\?Q\?Ein_Zertifikat_l=C3=A4uft_ab\?=$|^Subject: =\?UTF-8\?/
        );
        expect(body.join('\r\n\r\n'))
            .to.contain('In 7 days.')
            .and.contain('See to it.')
            .and.contain('Event: certificate.expiring')
            .and.contain('"a.example"');
    });

    it('logs in over TLS from the start', async () => {
        const { port, mails, logins } = await serve({ security: 'tls', account: ['panel', password] });
        expect(await send(port, { security: 'tls', username: 'panel' }, { secret: password })).to.include({
            ok: true,
            status: 250
        });
        expect(mails[0]).to.include({ secure: true, user: 'panel' });
        expect(logins).to.equal(['panel encrypted']);
    });

    it('logs in over TLS that is begun later', async () => {
        const { port, mails, logins } = await serve({ security: 'starttls', account: ['panel', password] });
        expect(
            await send(port, { security: 'starttls', username: 'panel' }, { secret: password })
        ).to.include({ ok: true, status: 250 });
        expect(mails[0]).to.include({ secure: true, user: 'panel' });
        expect(logins).to.equal(['panel encrypted']);
    });

    it('says nothing to a server that offers no TLS where it must', async () => {
        const lines: string[] = [];
        const port = await speak((line) => {
            lines.push(line);
            return line.startsWith('EHLO')
                ? '250-hello\r\n250 AUTH PLAIN LOGIN'
                : line.startsWith('STARTTLS')
                  ? '502 no'
                  : '250 fine';
        });
        const attempt = await send(port, { security: 'starttls', username: 'panel' }, { secret: password });
        expect(attempt.ok).to.be.false();
        expect(lines.filter((line) => !/^(?:EHLO|STARTTLS|QUIT)/.test(line))).to.be.empty();
    });

    it('does not take over what was said before TLS began', async () => {
        const lines: string[] = [];
        const port = await speak((line) => {
            lines.push(line);
            return line.startsWith('EHLO')
                ? '250-hello\r\n250 STARTTLS'
                : line.startsWith('STARTTLS')
                  ? '220 go\r\n250-hello\r\n250 AUTH PLAIN'
                  : '250 fine';
        });
        expect(
            (await send(port, { security: 'starttls', username: 'panel' }, { secret: password })).ok
        ).to.be.false();
        expect(lines.join('\n')).not.to.contain('AUTH').and.not.contain('MAIL');
    });

    it('refuses a server whose certificate it cannot trust', async () => {
        const tls = await serve({ security: 'tls', account: ['panel', password] });
        await expect(
            send(tls.port, { security: 'tls', username: 'panel' }, { secret: password, ca: [] })
        ).to.reject('127.0.0.1 was reached, but not over TLS: its certificate is self-signed');
        expect(tls.logins).to.be.empty();
        await tls.close();
        const later = await serve({ security: 'starttls', account: ['panel', password] });
        const attempt = await send(
            later.port,
            { security: 'starttls', username: 'panel' },
            { secret: password, ca: [] }
        );
        expect(attempt.ok).to.be.false();
        expect(attempt.error).to.contain('self-signed certificate');
        expect([later.logins, later.mails]).to.equal([[], []]);
    });

    it('keeps nothing of a password that the server repeats', async () => {
        const { port } = await serve({ security: 'none', account: ['panel', 'right'] });
        const attempt = await send(port, { username: 'panel' }, { secret: password });
        expect(attempt).to.include({ ok: false, status: 535 });
        expect(attempt.error).to.contain('Wrong: [redacted] [redacted]');
        expect(JSON.stringify(attempt))
            .not.to.contain('canary')
            .and.not.contain(Buffer.from(password).toString('base64'));
    });

    it('tells who was refused when others were not, and fails when all were', async () => {
        const { port, mails } = await serve({ security: 'none', refuses: ['gone@portico.example'] });
        expect(await send(port, { to: ['gone@portico.example', 'ops@portico.example'] })).to.include({
            ok: true,
            error: 'The server does not take mail for gone@portico.example'
        });
        expect(mails[0]?.to).to.equal(['ops@portico.example']);
        const attempt = await send(port, { to: ['gone@portico.example'] });
        expect(attempt).to.include({ ok: false, status: 550 });
        expect(mails).to.have.length(1);
    });

    it('is not made to send other headers or mails by what it is told', async () => {
        const { port, mails } = await serve({ security: 'none' });
        await send(
            port,
            {},
            {
                message: message({
                    title: 'a\r\nBcc: victim@portico.example\r\n\r\nbody',
                    text: '\r\n.\r\nMAIL FROM:<x@y>\r\nRCPT TO:<victim@portico.example>\r\nDATA',
                    data: { a: '\r\n.\r\nQUIT\r\n' }
                })
            }
        );
        expect(mails).to.have.length(1);
        expect(mails[0]?.to).to.equal(['ops@portico.example']);
        expect(mails[0]?.text.split('\r\n\r\n')[0]).not.to.match(/^Bcc:/im);
    });

    it('goes nowhere that the outbound client does not', async () => {
        const closed = createEmailSender({
            outbound: new Outbound({ allow: () => [], log: { warn: () => undefined } }),
            ca: []
        });
        const { port, mails } = await serve({ security: 'none' });
        for (const host of ['127.0.0.1', 'localhost', '0x7f.1', '::ffff:127.0.0.1']) {
            const fields: EmailFields = {
                host,
                port,
                security: 'none',
                username: null,
                from: 'a@b',
                to: ['c@d']
            };
            const failure = await expect(
                closed(fields, null, message(), new AbortController().signal)
            ).to.reject();
            expect((failure as { reason?: string }).reason).to.equal('ADDRESS_FORBIDDEN');
        }
        expect(mails).to.be.empty();
    });

    it('lets go of a server that says nothing, when it is told to', async () => {
        const port = await speak(() => null, '');
        const controller = new AbortController();
        const work = send(port, {}, { signal: controller.signal });
        await until(() => sockets.size === 1);
        controller.abort(new Error('enough'));
        await expect(work).to.reject('enough');
        await until(() => [...sockets].every((socket) => socket.destroyed));
    });

    it('survives a server that hangs up, floods, or speaks another language', async () => {
        for (const greeting of [
            '554 go away',
            'HTTP/1.1 400 Bad Request',
            `220 ${'x'.repeat(200_000)}`,
            '220-a\r\n'.repeat(10_000)
        ]) {
            const port = await speak((_line, socket) => {
                socket.destroy();
                return null;
            }, greeting);
            const controller = new AbortController();
            const timer = setTimeout(() => controller.abort(new Error('too slow')), 1_000);
            const outcome = await send(port, {}, { signal: controller.signal }).catch((error: Error) => ({
                ok: false,
                error: error.message
            }));
            clearTimeout(timer);
            expect(outcome.ok).to.be.false();
            expect((outcome.error ?? '').length).to.be.below(1_100);
            sockets.forEach((socket) => socket.destroy());
            other?.close();
        }
    });
});

describe('senderPattern', () => {
    it('takes addresses and names with addresses, and nothing that could become a header', () => {
        for (const text of [
            'a@b',
            'panel@portico.example',
            'Portico <panel@portico.example>',
            'Büro Süd <a+b@c.example>'
        ]) {
            expect(senderPattern.test(text), text).to.be.true();
        }
        for (const text of [
            '',
            'a',
            '@b',
            'a@',
            'a@b\r\nBcc: c@d',
            'a@b\n',
            'x\r\ny <a@b>',
            '"x" <a@b>',
            '<a@b>',
            'a@b, c@d',
            'x <a@b>, y <c@d>',
            'a b@c',
            'x: a@b;',
            'a@b>'
        ]) {
            expect(senderPattern.test(text), text).to.be.false();
        }
        for (const text of ['a@b\n', 'a@b,c@d', 'x <a@b>', 'a@-b', 'a@b-', 'ä@b', 'a@b c']) {
            expect(addressPattern.test(text), text).to.be.false();
        }
    });
});
