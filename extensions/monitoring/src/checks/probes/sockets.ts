/** Checks that end with a connection: TCP, with a text to send and one to wait for, and TLS. */
import type { Socket } from 'node:net';

import { type CheckSpec, splitTarget } from '../spec.ts';
import type { Attempt } from './attempt.ts';
import { ProbeFailure } from './outcome.ts';

/** How much of an answer is read. */
const mostBytes = 1024 * 1024;

/** Connects, sends the text and waits for the other one. Returns the milliseconds that it took. @throws ProbeFailure */
export async function probeTcp(attempt: Attempt, { target, expect }: CheckSpec): Promise<number> {
    const { host, port } = splitTarget(target, 0);
    const socket = await attempt.connect(host, port);
    const { send, receive } = expect;
    if (receive !== undefined) {
        await attempt.step('firstByte', async () => {
            const found = wait(socket, receive);
            if (send !== undefined) {
                socket.write(send);
            }
            await found;
        });
    } else if (send !== undefined) {
        socket.write(send);
    }
    return attempt.elapsedMs;
}

/** Makes a TLS handshake and looks at the certificate. Returns the milliseconds that it took. @throws ProbeFailure */
export async function probeTls(attempt: Attempt, { target, expect }: CheckSpec): Promise<number> {
    const { host, port } = splitTarget(target, 443);
    await attempt.secure(await attempt.connect(host, port), host);
    const latencyMs = attempt.elapsedMs;
    attempt.judgeCertificate(expect.certificateDays ?? 14);
    return latencyMs;
}

function wait(socket: Socket, text: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const wanted = Buffer.from(text);
    let got = Buffer.alloc(0);
    socket.on('data', (part: Buffer) => {
        got = Buffer.concat([got, part]);
        if (got.includes(wanted)) {
            resolve();
        } else if (got.length >= mostBytes) {
            reject(new ProbeFailure('TEXT_MISSING', 'The answer lacks the wanted text'));
        }
    });
    socket.once('close', () =>
        reject(
            got.length === 0
                ? new ProbeFailure('ANSWER_CUT', 'The connection was closed without an answer')
                : new ProbeFailure('TEXT_MISSING', 'The answer lacks the wanted text')
        )
    );
    return promise;
}
