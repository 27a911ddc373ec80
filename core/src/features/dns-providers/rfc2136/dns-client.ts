/** Asks one name server: over UDP, and over TCP when the answer does not fit. */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';

import { decodeMessage, encodeQuery, type Message, type RecordType, recordTypes } from './dns-message.ts';

/** A name server by address. */
export interface NameServer {
    /** An IP address. */
    readonly address: string;
    readonly port: number;
}

/** A name server did not answer, or answered wrongly; the message says which server. */
export class DnsFailure extends Error {}

/** Names of response codes (RFC 1035, section 4.1.1; RFC 2136, section 2.2). */
export const rcodes: Readonly<Record<number, string>> = {
    1: 'FORMERR',
    2: 'SERVFAIL',
    3: 'NXDOMAIN',
    4: 'NOTIMP',
    5: 'REFUSED',
    6: 'YXDOMAIN',
    7: 'YXRRSET',
    8: 'NXRRSET',
    9: 'NOTAUTH',
    10: 'NOTZONE'
};

/** Milliseconds to wait after the first datagram; the wait doubles with each further one. */
const firstWaitMs = 1_000;
const attempts = 3;
const tcpMs = 5_000;

/** A random message id, 0 to 65,535. */
export const newId = (): number => randomInt(0x10000);

/** A name server as text, for messages and configuration. */
export const serverName = ({ address, port }: NameServer): string =>
    `${isIPv6(address) ? `[${address}]` : address}${port === 53 ? '' : `:${port}`}`;

/** Asks one question; answers to other questions are ignored. @throws DnsFailure, or the signal's reason */
export async function ask(
    server: NameServer,
    name: string,
    type: RecordType,
    { recurse, signal }: { readonly recurse: boolean; readonly signal: AbortSignal }
): Promise<Message> {
    const id = newId();
    const wanted = name.toLowerCase().replace(/\.$/, '');
    return exchange(
        server,
        encodeQuery(id, name, type, recurse),
        signal,
        ({ questions: [question] }) => question?.name === wanted && question.type === recordTypes[type]
    );
}

/**
 * Sends a message until a reply with its number comes, over TCP when the reply was cut.
 * @throws DnsFailure, or the signal's reason
 */
export async function exchange(
    server: NameServer,
    message: Buffer,
    signal: AbortSignal,
    fits: (reply: Message) => boolean = () => true
): Promise<Message> {
    const id = message.readUInt16BE(0);
    const check = (bytes: Buffer): Message | null => {
        try {
            const reply = decodeMessage(bytes);
            return reply.isReply && reply.id === id && (reply.truncated || reply.rcode === 1 || fits(reply))
                ? reply
                : null;
        } catch {
            return null;
        }
    };
    // A message that does not fit into the smallest datagram that every server takes is sent over TCP at once.
    const reply = message.length > 512 ? null : await overUdp(server, message, check, signal);
    return reply === null || reply.truncated ? overTcp(server, message, check, signal) : reply;
}

function overUdp(
    server: NameServer,
    message: Buffer,
    check: (bytes: Buffer) => Message | null,
    signal: AbortSignal
): Promise<Message> {
    return new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4');
        let timer: NodeJS.Timeout | undefined;
        let sent = 0;
        let ended = false;
        const end = (): void => {
            if (ended) {
                return;
            }
            ended = true;
            clearTimeout(timer);
            signal.removeEventListener('abort', aborted);
            socket.close();
        };
        const fail = (why: string, cause?: unknown): void => {
            end();
            reject(new DnsFailure(`The name server ${serverName(server)} ${why}`, { cause }));
        };
        const aborted = (): void => {
            end();
            reject(signal.reason as Error);
        };
        const send = (): void => {
            if (sent === attempts) {
                fail('does not answer');
                return;
            }
            timer = setTimeout(send, firstWaitMs * 2 ** sent);
            sent += 1;
            socket.send(message, (error) => {
                if (error !== null) {
                    fail(`cannot be reached: ${error.message}`, error);
                }
            });
        };
        signal.addEventListener('abort', aborted);
        socket.once('error', (error) => fail(`cannot be reached: ${error.message}`, error));
        socket.on('message', (bytes) => {
            const reply = check(bytes);
            if (reply !== null) {
                end();
                resolve(reply);
            }
        });
        // A connected socket: the kernel drops packets from other addresses, and reports a closed port.
        socket.connect(server.port, server.address, send);
    });
}

function overTcp(
    server: NameServer,
    message: Buffer,
    check: (bytes: Buffer) => Message | null,
    signal: AbortSignal
): Promise<Message> {
    return new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const socket = connect({ host: server.address, port: server.port });
        let received = Buffer.alloc(0);
        const end = (): void => {
            signal.removeEventListener('abort', aborted);
            socket.destroy();
        };
        const fail = (why: string, cause?: unknown): void => {
            end();
            reject(new DnsFailure(`The name server ${serverName(server)} ${why}`, { cause }));
        };
        const aborted = (): void => {
            end();
            reject(signal.reason as Error);
        };
        signal.addEventListener('abort', aborted);
        socket.setTimeout(tcpMs, () => fail('does not answer over TCP'));
        socket.once('error', (error) => fail(`cannot be reached over TCP: ${error.message}`, error));
        socket.once('close', () => fail('closed the connection without an answer'));
        socket.once('connect', () => {
            const length = Buffer.alloc(2);
            length.writeUInt16BE(message.length);
            socket.write(Buffer.concat([length, message]));
        });
        socket.on('data', (chunk) => {
            received = Buffer.concat([received, chunk]);
            if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
                const reply = check(received.subarray(2, 2 + received.readUInt16BE(0)));
                if (reply === null || reply.truncated) {
                    fail('answers with something that is no DNS');
                    return;
                }
                end();
                resolve(reply);
            }
        });
    });
}
