/** A panel with its engine, as the author of an API client sees it. Every answer is compared with the document, and visitors can ask the sites. */
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { type ContractCheck, contractCheck } from '../api/contract.ts';
import type { Answer } from './client.ts';
import { startPanel, type TestPanel, type TestPanelOptions } from './panel.ts';

export interface Visit {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
    /** Subject alternative names of the certificate that was shown; null over plain HTTP. */
    readonly names: string | null;
}

export interface VisitOptions {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    /** Over HTTPS. */
    readonly secure?: boolean;
}

export interface Consumer extends TestPanel {
    readonly document: OpenApiDocument;
    /** Asks a site through the engine, by its name. */
    visit(host: string, path?: string, options?: VisitOptions): Promise<Visit>;
}

/** Starts a panel whose answers must all match its own document. */
export async function startConsumer(options: TestPanelOptions = {}): Promise<Consumer> {
    const contract: { check?: ContractCheck } = {};
    const panel = await startPanel({
        ...options,
        watch: (method, path, { status, headers, text }) =>
            contract.check?.(method, path, status, headers, text)
    });
    const document = JSON.parse((await panel.client.get('/api/openapi.json')).text) as OpenApiDocument;
    contract.check = contractCheck(document);
    return Object.defineProperties(
        {},
        {
            ...Object.getOwnPropertyDescriptors(panel),
            document: { value: document },
            visit: {
                value: (
                    host: string,
                    path = '/',
                    { method = 'GET', headers = {}, body, secure = false }: VisitOptions = {}
                ) =>
                    new Promise<Visit>((resolve, reject) => {
                        const common = {
                            host: '127.0.0.1',
                            method,
                            path,
                            agent: false as const,
                            headers: {
                                host,
                                ...(body === undefined
                                    ? {}
                                    : { 'content-length': String(Buffer.byteLength(body)) }),
                                ...headers
                            }
                        };
                        const take = (answer: IncomingMessage): void => {
                            // After the connection has ended, the certificate cannot be read.
                            const names = secure
                                ? ((answer.socket as TLSSocket).getPeerCertificate().subjectaltname ?? '')
                                : null;
                            const chunks: Buffer[] = [];
                            answer.on('data', (chunk: Buffer) => chunks.push(chunk));
                            answer.once('error', reject);
                            answer.once('end', () =>
                                resolve({
                                    status: answer.statusCode ?? 0,
                                    headers: answer.headers,
                                    body: Buffer.concat(chunks).toString('latin1'),
                                    names
                                })
                            );
                        };
                        const sent = secure
                            ? secureRequest(
                                  {
                                      ...common,
                                      port: panel.httpsPort,
                                      servername: host,
                                      rejectUnauthorized: false
                                  },
                                  take
                              )
                            : plainRequest({ ...common, port: panel.httpPort }, take);
                        sent.once('error', reject);
                        sent.end(body);
                    })
            }
        }
    ) as Consumer;
}

/** The parts of an answer by which clients decide: `[status, code, reason]`. It asserts nothing. */
export const outcome = ({ status, code, data }: Answer): readonly [number, number, string | undefined] => [
    status,
    code,
    (data as { reason?: string } | null)?.reason
];

/** The paths in `data.errors` of an answer with code 40001. */
export const faultsOf = ({ data }: Answer): string[] =>
    (data.errors as { path: string }[]).map(({ path }) => path);
