/** Looks at what the engine hands to a client that asks for a name: the only proof that a certificate is served. */
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from 'node:tls';

const loopback = '127.0.0.1';
const handshakeMs = 3_000;
const patienceMs = 10_000;
const pauseMs = 50;

/** Fingerprint of the leaf: SHA-256, lower-case hexadecimal; null when there is no handshake. */
function fingerprintServed(port: number, name: string, signal: AbortSignal): Promise<string | null> {
    return new Promise((resolve) => {
        const socket = connect({ host: loopback, port, servername: name, rejectUnauthorized: false });
        const end = (fingerprint: string | null): void => {
            clearTimeout(timer);
            signal.removeEventListener('abort', aborted);
            socket.destroy();
            resolve(fingerprint);
        };
        const aborted = (): void => end(null);
        const timer = setTimeout(aborted, handshakeMs);
        signal.addEventListener('abort', aborted, { once: true });
        socket.once('error', aborted);
        socket.once('secureConnect', () =>
            end(socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '').toLowerCase() ?? null)
        );
    });
}

/**
 * Whether the engine serves for a name what it should.
 * @param isRight - decides about a fingerprint
 * @returns null, or what is wrong
 */
export async function proveServed(
    port: number,
    name: string,
    isRight: (fingerprint: string) => boolean,
    signal: AbortSignal,
    limitMs = patienceMs
): Promise<string | null> {
    const asked = name.replace(/^\*/, 'portico-check');
    const end = performance.now() + limitMs;
    for (;;) {
        const fingerprint = await fingerprintServed(port, asked, signal);
        if (fingerprint !== null && isRight(fingerprint)) {
            return null;
        }
        signal.throwIfAborted();
        if (performance.now() > end) {
            return fingerprint === null
                ? `no TLS handshake for ${asked} came about`
                : `the former certificate is still served for ${asked}`;
        }
        await wait(pauseMs, undefined, { signal });
    }
}
