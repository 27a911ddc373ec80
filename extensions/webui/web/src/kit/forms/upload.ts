/** Uploads by tus 1.0: a broken one goes on where it was, also after the page was loaded again, and after its session has ended and begun anew. */
import { Upload } from 'tus-js-client';

import { freshToken } from '../../api/client.ts';
import { drop } from '../../api/session/session.ts';

const chunkBytes = 8 * 1024 * 1024;

/** What an upload may say. */
export interface UploadOptions {
    /** Texts that go with the file, by name. */
    readonly metadata: Readonly<Record<string, unknown>>;
    readonly signal: AbortSignal;
    readonly onProgress: (sent: number, total: number) => void;
}

/** Sends a file. @throws Error of the server or of the network, after several attempts */
export async function uploadByTus(
    endpoint: string,
    file: Blob,
    { metadata, signal, onProgress }: UploadOptions
): Promise<void> {
    const texts = Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)]));
    let token = '';
    await new Promise<void>((resolve, reject) => {
        const upload = new Upload(file, {
            endpoint,
            metadata: texts,
            chunkSize: chunkBytes,
            retryDelays: [500, 1_000, 3_000, 5_000, 10_000, 20_000],
            removeFingerprintOnSuccess: true,
            // A page hands over a file without its name, so what it is for says which upload goes on.
            fingerprint: () => Promise.resolve(`${endpoint} ${JSON.stringify(texts)} ${file.size}`),
            onBeforeRequest: async (request) => {
                token = await freshToken();
                request.setHeader('Authorization', `Bearer ${token}`);
            },
            onAfterResponse(_request, response) {
                // To the library, a refusal ends the upload, or begins it anew. As a fault, the same request is sent again, with a new token.
                if (response.getStatus() === 401) {
                    drop(token);
                    throw new Error('The panel refuses the token');
                }
            },
            onProgress: (sent, total) => onProgress(sent, total ?? file.size),
            onSuccess: () => resolve(),
            onError: reject
        });
        signal.addEventListener('abort', () => {
            void upload.abort();
            reject(new DOMException('The upload was stopped', 'AbortError'));
        });
        upload.findPreviousUploads().then((earlier) => {
            const [last] = earlier;
            if (last !== undefined) {
                upload.resumeFromPreviousUpload(last);
            }
            upload.start();
        }, reject);
    });
}
