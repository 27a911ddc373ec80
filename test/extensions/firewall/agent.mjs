// Listens and connects inside a network namespace, as the lines of its standard input say. Answers a line for each.
import { createServer as createHttpServer, request } from 'node:http';
import { createConnection, createServer } from 'node:net';
import { createInterface } from 'node:readline';

const servers = [];
const streams = new Map();
const answer = (id, result) => process.stdout.write(`${JSON.stringify({ id, result })}\n`);

const connect = ({ host, port, timeoutMs = 400, localAddress }) =>
    new Promise((resolve) => {
        const socket = createConnection({
            host,
            port,
            ...(localAddress === undefined ? {} : { localAddress })
        });
        const end = (result) => {
            socket.destroy();
            resolve(result);
        };
        socket.setTimeout(timeoutMs, () => end('timeout'));
        // The server greets: a connection that is only accepted by the kernel's queue is not enough.
        socket.once('data', () => end('open'));
        socket.once('error', ({ code }) => end(code === 'ECONNREFUSED' ? 'refused' : code));
    });

const listen = ({ port, host = '::' }) =>
    new Promise((resolve) => {
        const server = createServer((socket) => {
            socket.on('error', () => undefined);
            socket.write('hello\n');
            socket.on('data', (data) => socket.write(data));
        });
        server.on('error', ({ code }) => resolve(code));
        server.listen(port, host, () => resolve(server.address().port));
        servers.push(server);
    });

// A server of one text.
const serve = ({ port, text }) =>
    new Promise((resolve) => {
        const server = createHttpServer((_asked, answer) => answer.end(text));
        server.on('error', ({ code }) => resolve(code));
        server.listen(port, () => resolve(port));
        servers.push(server);
    });

// A connection that stays, and says whether it still answers.
const hold = ({ name, host, port }) =>
    new Promise((resolve) => {
        const socket = createConnection({ host, port });
        const state = { socket, error: null, count: 0 };
        streams.set(name, state);
        socket.once('data', () => resolve('open'));
        socket.on('data', () => (state.count += 1));
        socket.on('error', ({ code }) => {
            state.error = code;
            resolve(code);
        });
    });
const echo = ({ name, timeoutMs = 2000 }) =>
    new Promise((resolve) => {
        const { socket, error } = streams.get(name);
        if (error !== null || socket.destroyed) {
            resolve(error ?? 'closed');
            return;
        }
        const late = setTimeout(() => resolve('timeout'), timeoutMs);
        socket.once('data', () => {
            clearTimeout(late);
            resolve('open');
        });
        socket.write('x');
    });

// The answer of a site is no envelope.
const readEnvelope = (text) => (text.startsWith('{') ? JSON.parse(text) : {});

// A request on a connection of its own, so that the rules see it.
const http = ({ host, port, method, path, body, token, headers = {}, localAddress, timeoutMs = 5000 }) =>
    new Promise((resolve) => {
        const text = body === undefined ? undefined : JSON.stringify(body);
        const sent = request(
            {
                host,
                port,
                method,
                path,
                agent: false,
                ...(localAddress === undefined ? {} : { localAddress }),
                headers: {
                    ...headers,
                    ...(text === undefined
                        ? {}
                        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
                    ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
                }
            },
            (response) => {
                let all = '';
                response.on('data', (chunk) => (all += chunk));
                response.on('end', () =>
                    resolve({ status: response.statusCode, text: all, ...readEnvelope(all) })
                );
            }
        );
        // A limit of the request itself would only count from when it is connected.
        const late = setTimeout(() => sent.destroy(new Error('timeout')), timeoutMs);
        sent.on('close', () => clearTimeout(late));
        sent.on('error', ({ code, message }) => resolve({ status: 0, code: code ?? message }));
        sent.end(text);
    });

const verbs = { connect, listen, serve, hold, echo, http };
createInterface({ input: process.stdin }).on('line', async (line) => {
    const { id, verb, ...input } = JSON.parse(line);
    answer(id, await verbs[verb](input));
});
process.stdin.on('end', () => process.exit(0));
