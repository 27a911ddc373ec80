/** A FastCGI responder that answers with what it received, in place of PHP's process manager. */
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface TestResponder {
    readonly address: string;
    /** Number of complete requests so far. */
    requests(): number;
    close(): Promise<void>;
}

/**
 * Answers the request's parameters and body as JSON, with its own name as `RESPONDER`. In the query string, `status=404` sets the status,
 * and `waitMs=500` delays the answer.
 */
export const startFastcgi = async (name = ''): Promise<TestResponder> => {
    const open = new Set<Socket>();
    let requests = 0;
    const server = createServer((socket) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        socket.on('error', () => undefined);
        let buffer = Buffer.alloc(0);
        let parameters = Buffer.alloc(0);
        let body = Buffer.alloc(0);
        socket.on('data', (chunk: Buffer) => {
            buffer = Buffer.concat([buffer, chunk]);
            while (buffer.length >= 8) {
                const length = buffer.readUInt16BE(4);
                const whole = 8 + length + buffer.readUInt8(6);
                if (buffer.length < whole) {
                    return;
                }

                const type = buffer.readUInt8(1);
                const id = buffer.readUInt16BE(2);
                const content = buffer.subarray(8, 8 + length);
                buffer = buffer.subarray(whole);
                if (type === 4) {
                    parameters = Buffer.concat([parameters, content]);
                } else if (type === 5 && length > 0) {
                    body = Buffer.concat([body, content]);
                } else if (type === 5) {
                    requests += 1;
                    const pairs = Object.fromEntries(readPairs(parameters));
                    const asked = (key: string): string | undefined =>
                        new RegExp(`${key}=(\\d+)`).exec(pairs['QUERY_STRING'] ?? '')?.[1];
                    const told = JSON.stringify({ ...pairs, RESPONDER: name, body: body.toString() });
                    const text = Buffer.from(
                        `Status: ${asked('status') ?? '200'}\r\nContent-Type: application/json\r\n\r\n${told}`
                    );
                    setTimeout(
                        () =>
                            socket.end(
                                Buffer.concat([
                                    record(6, id, text),
                                    record(6, id, Buffer.alloc(0)),
                                    record(3, id, Buffer.alloc(8))
                                ])
                            ),
                        Number(asked('waitMs') ?? 0)
                    );
                }
            }
        });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
        address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
        requests: () => requests,
        close: async () => {
            open.forEach((socket) => socket.destroy());
            await new Promise<void>((resolve) => server.close(() => resolve()));
        }
    };
};

const record = (type: number, id: number, content: Buffer): Buffer => {
    const head = Buffer.alloc(8);
    head.writeUInt8(1, 0);
    head.writeUInt8(type, 1);
    head.writeUInt16BE(id, 2);
    head.writeUInt16BE(content.length, 4);
    return Buffer.concat([head, content]);
};

function* readPairs(buffer: Buffer): Generator<[string, string]> {
    let at = 0;
    const length = (): number => {
        const first = buffer.readUInt8(at);
        if (first < 128) {
            at += 1;
            return first;
        }

        at += 4;
        return buffer.readUInt32BE(at - 4) & 0x7fffffff;
    };
    while (at < buffer.length) {
        const name = length();
        const value = length();
        yield [buffer.toString('utf8', at, at + name), buffer.toString('utf8', at + name, at + name + value)];
        at += name + value;
    }
}
