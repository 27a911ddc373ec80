/** A small S3 server over TLS, in memory: signatures of version 4 are checked, so that a wrong key is refused as S3 does. */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

import { selfSigned } from '../self-signed.ts';

export interface S3Server {
    readonly endpoint: string;
    /** The certificate to trust. */
    readonly ca: string;
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    /** Objects by `bucket/key`. */
    readonly objects: ReadonlyMap<string, Buffer>;
    close(): Promise<void>;
}

/** Starts one that has the bucket. */
export async function openS3(bucket: string): Promise<S3Server> {
    const { certificate, key } = selfSigned(['127.0.0.1', 'localhost']);
    const [accessKeyId, secretAccessKey] = ['AKPORTICOTEST', randomUUID()];
    const objects = new Map<string, Buffer>();
    const server = createServer({ cert: certificate, key }, (request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
            if (isSigned(request, accessKeyId, secretAccessKey)) {
                answer(request, response, Buffer.concat(chunks), bucket, objects);
            } else {
                fail(response, 403, 'SignatureDoesNotMatch');
            }
        });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return {
        endpoint: `https://127.0.0.1:${port}`,
        ca: certificate,
        accessKeyId,
        secretAccessKey,
        objects,
        close: () =>
            new Promise((resolve) => {
                server.close(() => resolve());
                server.closeAllConnections();
            })
    };
}

function answer(
    { method = '', url = '', headers }: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
    bucket: string,
    objects: Map<string, Buffer>
): void {
    const { pathname, searchParams } = new URL(url, 'https://s3');
    const name = decodeURIComponent(pathname.slice(1)).replace(/\/$/, '');
    if (name !== bucket && !name.startsWith(`${bucket}/`)) {
        fail(response, 404, 'NoSuchBucket');
    } else if (name === bucket) {
        const text = searchParams.has('location')
            ? '<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>'
            : list(bucket, searchParams, objects);
        response.writeHead(200, { 'content-type': 'application/xml' }).end(method === 'HEAD' ? '' : text);
    } else if (method === 'PUT') {
        objects.set(name, body);
        response.writeHead(200, { etag: etag(body) }).end();
    } else if (method === 'DELETE') {
        objects.delete(name);
        response.writeHead(204).end();
    } else {
        const found = objects.get(name);
        if (found === undefined) {
            fail(response, 404, 'NoSuchKey', method === 'HEAD');
            return;
        }
        const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
        const last =
            end === undefined || end === '' ? found.length - 1 : Math.min(Number(end), found.length - 1);
        const part = start === undefined ? found : found.subarray(Number(start), last + 1);
        response
            .writeHead(start === undefined ? 200 : 206, {
                'content-length': String(part.length),
                'content-type': 'application/octet-stream',
                'last-modified': new Date(0).toUTCString(),
                etag: etag(found),
                ...(start === undefined ? {} : { 'content-range': `bytes ${start}-${last}/${found.length}` })
            })
            .end(method === 'HEAD' ? undefined : part);
    }
}

function list(bucket: string, query: URLSearchParams, objects: ReadonlyMap<string, Buffer>): string {
    const prefix = query.get('prefix') ?? '';
    const delimiter = query.get('delimiter') ?? '';
    const keys = [...objects.keys()]
        .map((key) => key.slice(bucket.length + 1))
        .filter((key) => key.startsWith(prefix));
    const folderOf = (key: string): string | null => {
        const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
        return at < 0 ? null : key.slice(0, at + 1);
    };
    const folders = new Set(keys.map(folderOf).filter((folder) => folder !== null));
    const contents = keys
        .filter((key) => folderOf(key) === null)
        .sort()
        .map((key) => {
            const body = objects.get(`${bucket}/${key}`) ?? Buffer.alloc(0);
            return `<Contents><Key>${key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>${etag(body)}</ETag><Size>${body.length}</Size></Contents>`;
        });
    return `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${bucket}</Name><Prefix>${prefix}</Prefix><IsTruncated>false</IsTruncated>${contents.join('')}${[...folders].map((folder) => `<CommonPrefixes><Prefix>${folder}</Prefix></CommonPrefixes>`).join('')}</ListBucketResult>`;
}

function fail(response: ServerResponse, status: number, code: string, isHead = false): void {
    response
        .writeHead(status, { 'content-type': 'application/xml' })
        .end(
            isHead
                ? undefined
                : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`
        );
}

/** Signature version 4: the request that was signed is built again from what came. */
function isSigned({ method = '', url = '', headers }: IncomingMessage, id: string, secret: string): boolean {
    const [, scope = '', names = '', signature] =
        /Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]+)/.exec(
            headers.authorization ?? ''
        ) ?? [];
    const [given, day = '', region = '', service = ''] = scope.split('/');
    const [path = '', query = ''] = url.split('?');
    const canonical = [
        method,
        path,
        query
            .split('&')
            .filter((pair) => pair !== '')
            .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
            .sort()
            .join('&'),
        ...names.split(';').map((name) => `${name}:${String(headers[name] ?? '').trim()}`),
        '',
        names,
        headers['x-amz-content-sha256'] ?? ''
    ].join('\n');
    const text = [
        'AWS4-HMAC-SHA256',
        headers['x-amz-date'],
        `${day}/${region}/${service}/aws4_request`,
        createHash('sha256').update(canonical).digest('hex')
    ].join('\n');
    const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>(
        (last, part) => createHmac('sha256', last).update(part).digest(),
        `AWS4${secret}`
    );
    return given === id && createHmac('sha256', key).update(text).digest('hex') === signature;
}

function etag(body: Buffer): string {
    return `"${createHash('md5').update(body).digest('hex')}"`;
}
