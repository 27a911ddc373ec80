// A registry that answers wrong. It asks the real one, and spoils the answer as the first folder of the repository says: `/v2/html/app` is `/v2/fault/app`, spoiled.
import { createServer, request } from 'node:http';

const [upstream, port] = process.argv.slice(2).map(Number);

const spoil = {
    html: (_kind, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        response.end('<html><body>Please log in to this network</body></html>');
    },
    manifest: (kind, response, { status, headers, body }) => {
        const { 'content-length': _length, ...rest } = headers;
        response.writeHead(status, rest);
        response.end(kind === 'manifests' ? Buffer.concat([body, Buffer.from(' ')]) : body);
    },
    layer: (kind, response, { status, headers, body }) => {
        const spoiled = Buffer.from(body);
        if (kind === 'blobs' && body.length > 100_000) {
            spoiled[body.length - 100] ^= 0xff;
        }
        response.writeHead(status, headers);
        response.end(spoiled);
    },
    cut: (kind, response, { status, headers, body }) => {
        const shorter = kind === 'blobs' && body.length > 100_000 ? body.subarray(0, body.length / 2) : body;
        response.writeHead(status, { ...headers, 'content-length': shorter.length });
        response.end(shorter);
    },
    stall: (kind, response, { status, headers, body }) => {
        response.writeHead(status, headers);
        if (kind === 'blobs' && body.length > 100_000) {
            response.write(body.subarray(0, body.length / 2));
        } else {
            response.end(body);
        }
    },
    fail: (_kind, response) => response.writeHead(500).end('{"errors":[{"code":"UNKNOWN"}]}')
};

createServer((incoming, response) => {
    const [, mode, rest] = /^\/v2\/([a-z]+)\/(.*)$/.exec(incoming.url) ?? [];
    const [, kind] = /\/(manifests|blobs)\//.exec(incoming.url) ?? [];
    const path = mode === undefined ? incoming.url : `/v2/fault/${rest}`;
    request({ host: '127.0.0.1', port: upstream, method: incoming.method, path, headers: incoming.headers })
        .on('response', (answer) => {
            const chunks = [];
            answer.on('data', (chunk) => chunks.push(chunk));
            answer.on('end', () => {
                const { statusCode: status, headers } = answer;
                const found = { status, headers, body: Buffer.concat(chunks) };
                const isHead = incoming.method === 'HEAD';
                if (
                    mode === undefined ||
                    spoil[mode] === undefined ||
                    (isHead && mode !== 'html' && mode !== 'fail')
                ) {
                    response.writeHead(status, headers);
                    response.end(found.body);
                } else {
                    spoil[mode](kind, response, found);
                }
            });
        })
        .end();
}).listen(port, '127.0.0.1', () => process.stdout.write('up\n'));
