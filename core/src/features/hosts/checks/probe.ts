/** Small network probes, each with a time limit. They never throw: a failed probe resolves with its reason. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';

import type { Address } from '../input/normalise.ts';

/** The engine is asked on this machine, not at the address that a name resolves to. */
const loopback = '127.0.0.1';
const longestBody = 4096;

/** Tries to connect. Null when that works, otherwise the reason why not. */
export function connects(address: Address, timeoutMs: number): Promise<string | null> {
    return new Promise((done) => {
        const socket = connect(
            address.socket === null ? { host: address.host, port: address.port } : { path: address.socket }
        );
        const end = (problem: string | null): void => {
            socket.destroy();
            done(problem);
        };
        socket.setTimeout(timeoutMs, () => end('no answer in time'));
        socket.once('connect', () => end(null));
        socket.once('error', (error: NodeJS.ErrnoException) => end(reason(error)));
    });
}

/** The certificate that a TLS handshake showed, or the reason why there was no handshake. */
export type Handshake =
    { readonly issuer: string; readonly notAfter: Date; readonly matches: boolean } | string;

/** Makes a TLS handshake with the engine under this name. */
export function handshake(port: number, name: string, timeoutMs: number): Promise<Handshake> {
    return new Promise((done) => {
        // The certificate is looked at, not trusted: nothing is sent over this connection.
        const socket = tlsConnect({ host: loopback, port, servername: name, rejectUnauthorized: false });
        const end = (result: Handshake): void => {
            socket.destroy();
            done(result);
        };
        socket.setTimeout(timeoutMs, () => end('no answer in time'));
        socket.once('error', (error: NodeJS.ErrnoException) => end(reason(error)));
        socket.once('secureConnect', () => {
            const certificate = socket.getPeerX509Certificate();
            end(
                certificate === undefined
                    ? 'no certificate'
                    : {
                          issuer: certificate.issuer.replaceAll('\n', ', '),
                          notAfter: new Date(certificate.validTo),
                          matches: certificate.checkHost(name, { subject: 'never' }) !== undefined
                      }
            );
        });
    });
}

/** An HTTP answer, as far as two are compared. */
export interface Answer {
    readonly status: number;
    /** Names of the headers, sorted and joined. */
    readonly headers: string;
    readonly body: string;
}

/** The engine's answer to `GET /` under this name, or the reason why there is none. */
export function answerOf(
    port: number,
    secure: boolean,
    name: string,
    timeoutMs: number
): Promise<Answer | string> {
    return new Promise((done) => {
        const options = {
            host: loopback,
            port,
            path: '/',
            method: 'GET',
            agent: false,
            timeout: timeoutMs,
            headers: { host: name, 'user-agent': 'portico-check' }
        } as const;
        const request = secure
            ? httpsRequest({ ...options, servername: name, rejectUnauthorized: false })
            : httpRequest(options);
        const end = (result: Answer | string): void => {
            request.destroy();
            done(result);
        };
        const timer = setTimeout(() => end('no answer in time'), timeoutMs);
        request.once('close', () => clearTimeout(timer));
        request.once('error', (error: NodeJS.ErrnoException) => end(reason(error)));
        request.once('response', (response) => {
            let body = '';
            const answer = (): void => {
                const names = Object.keys(response.headers)
                    .filter((header) => header !== 'date')
                    .sort();
                end({ status: response.statusCode ?? 0, headers: names.join(), body });
            };
            response.setEncoding('latin1');
            response.on('data', (part: string) => {
                body += part;
                if (body.length >= longestBody) {
                    answer();
                }
            });
            response.once('end', answer);
            response.once('error', answer);
        });
        request.end();
    });
}

/** Whether two answers have the same status, header names and body. */
export function sameAnswer(one: Answer, other: Answer): boolean {
    return one.status === other.status && one.headers === other.headers && one.body === other.body;
}

const reasons: Readonly<Record<string, string>> = {
    ECONNREFUSED: 'the connection is refused',
    ENOENT: 'there is no such socket',
    EACCES: 'the panel may not open it',
    ENOTFOUND: 'the name does not resolve',
    EHOSTUNREACH: 'there is no way there',
    ECONNRESET: 'the connection was cut',
    ETIMEDOUT: 'no answer in time'
};

function reason(error: NodeJS.ErrnoException): string {
    return reasons[error.code ?? ''] ?? error.code ?? error.message;
}
