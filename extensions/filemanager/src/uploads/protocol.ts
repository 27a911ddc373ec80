/** tus 1.0 over WHATWG requests, with the extensions creation, creation-with-upload, termination, expiration and checksum. */
import { type Actor, errors, isFailure, statusOf } from '@portico/sdk';

import { fail } from '../errors.ts';
import { parseInner } from '../roots/path.ts';
import type { Roots } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';
import {
    bodyType,
    checkVersion,
    readChecksum,
    readMetadata,
    tusAlgorithms,
    tusExtensions,
    tusVersion,
    wholeNumber
} from './headers.ts';
import type { Uploads, UploadState } from './uploads.ts';

/** The part of a call that the protocol needs. */
export interface Caller {
    readonly actor: Actor;
    readonly signal: AbortSignal;
}

/** The target of an upload in the query; it goes before the metadata. */
export interface Target {
    readonly root?: string | undefined;
    readonly path?: string | undefined;
}

/** Answers the requests of tus clients. */
export class TusProtocol {
    readonly #ctx: Ctx;
    readonly #roots: Roots;
    readonly #uploads: Uploads;

    constructor(ctx: Ctx, roots: Roots, uploads: Uploads) {
        this.#ctx = ctx;
        this.#roots = roots;
        this.#uploads = uploads;
    }

    /** Answers POST and OPTIONS of the collection. */
    async collection(request: Request, caller: Caller, target: Target): Promise<Response> {
        return answerFailures(caller.signal, async () => {
            if (request.method === 'OPTIONS') {
                return this.#options();
            }
            checkVersion(request.headers);
            return this.#create(request, caller, target);
        });
    }

    /** Answers HEAD, PATCH, DELETE and OPTIONS of one upload. */
    async one(request: Request, caller: Caller, id: string): Promise<Response> {
        return answerFailures(caller.signal, async () => {
            if (request.method === 'OPTIONS') {
                return this.#options();
            }
            checkVersion(request.headers);
            switch (request.method) {
                case 'HEAD': {
                    const { row, offset } = await this.#uploads.find(caller.actor, id);
                    return answer(200, {
                        ...progress({ row, offset }),
                        'upload-length': String(row.length),
                        ...(row.metadata === '' ? {} : { 'upload-metadata': row.metadata })
                    });
                }
                case 'PATCH':
                    return answer(204, progress(await this.#append(request, caller, id)));
                default:
                    await this.#uploads.remove(caller.actor, id);
                    return answer(204, {});
            }
        });
    }

    #options(): Response {
        return answer(204, {
            'tus-version': tusVersion,
            'tus-extension': tusExtensions,
            'tus-max-size': String(this.#ctx.settings.uploadBytes),
            'tus-checksum-algorithm': tusAlgorithms
        });
    }

    async #create(request: Request, { actor, signal }: Caller, target: Target): Promise<Response> {
        const { headers } = request;
        const length = wholeNumber(headers, 'upload-length');
        if (length === null) {
            throw fail.TUS_HEADER({ header: 'Upload-Length' });
        }
        const metadata = readMetadata(headers);
        const root = this.#roots.forChange(actor, target.root ?? metadata.get('root') ?? '');
        const path = parseInner(target.path ?? metadata.get('path') ?? metadata.get('filename') ?? '');
        const row = await this.#uploads.create(actor, {
            root,
            path,
            length,
            metadata: headers.get('upload-metadata') ?? '',
            replace: metadata.get('replace') === 'true'
        });
        const location = `/api/plugins/${this.#ctx.name}/uploads/${row.id}`;
        const withBody = headers.get('content-type') === bodyType;
        if (!withBody && length > 0) {
            return answer(201, { location, ...progress({ row, offset: 0 }) });
        }
        try {
            const chunk = {
                offset: 0,
                body: withBody ? request.body : null,
                checksum: withBody ? readChecksum(headers) : null,
                signal
            };
            return answer(201, { location, ...progress(await this.#uploads.append(actor, row.id, chunk)) });
        } catch (error) {
            if (!withBody || isFailure(error)) {
                throw error;
            }
            // The upload exists although its body broke off; the answer says how many bytes arrived.
            return answer(201, { location, ...progress(await this.#uploads.find(actor, row.id)) });
        }
    }

    async #append(request: Request, { actor, signal }: Caller, id: string): Promise<UploadState> {
        const { headers } = request;
        if (headers.get('content-type') !== bodyType) {
            throw fail.CHUNK_TYPE();
        }
        const offset = wholeNumber(headers, 'upload-offset');
        if (offset === null) {
            throw fail.TUS_HEADER({ header: 'Upload-Offset' });
        }
        return this.#uploads.append(actor, id, {
            offset,
            body: request.body,
            checksum: readChecksum(headers),
            signal
        });
    }
}

function progress({ row, offset }: UploadState): Record<string, string> {
    return { 'upload-offset': String(offset), 'upload-expires': new Date(row.expires).toUTCString() };
}

function answer(
    status: number,
    headers: Readonly<Record<string, string>>,
    body: string | null = null
): Response {
    return new Response(body, {
        status,
        headers: { 'tus-resumable': tusVersion, 'cache-control': 'no-store', ...headers }
    });
}

/** Turns failures into answers of the protocol: clients read the status, people read the body. A request whose client has left is answered too. */
async function answerFailures(signal: AbortSignal, work: () => Promise<Response>): Promise<Response> {
    try {
        return await work();
    } catch (error) {
        const failure = isFailure(error) ? error : null;
        if (failure === null && !signal.aborted) {
            throw error;
        }
        const { code, reason, message, data } = failure ?? errors.inUse('upload');
        const extra: Record<string, string> = reason === 'TUS_VERSION' ? { 'tus-version': tusVersion } : {};
        return answer(
            statusOf(code),
            { 'content-type': 'application/json; charset=utf-8', ...extra },
            JSON.stringify({ code, message, data: { reason, ...data } })
        );
    }
}
