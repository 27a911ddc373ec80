/** Ports of a network namespace as ports of this one, and the other way round: connections pass through sockets in a folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

/** Listens where the second process cannot, and connects where it can. */
const script = `
const { connect, createServer } = require('node:net');
const [folder, inward, outward] = process.argv.slice(1);
const relay = (from, to) => new Promise((resolve) => createServer((one) => {
    const other = connect(to);
    one.pipe(other).pipe(one);
    [one, other].forEach((each) => each.on('error', () => { one.destroy(); other.destroy(); }));
}).listen(from, resolve));
Promise.all([
    ...JSON.parse(inward).map((port) => relay({ path: folder + '/in-' + port }, { host: '127.0.0.1', port })),
    ...JSON.parse(outward).map((port) => relay({ host: '127.0.0.1', port }, { path: folder + '/out-' + port }))
]).then(() => console.log('up'));
`;

/** Relays ports to and from the network namespace of a process. */
export class Relay {
    readonly #child: ChildProcess;
    readonly #servers: readonly Server[];
    readonly #sockets = new Set<Socket>();

    private constructor(
        child: ChildProcess,
        folder: string,
        inward: readonly number[],
        outward: readonly number[]
    ) {
        this.#child = child;
        this.#servers = [
            ...inward.map((port) =>
                this.#relay({ path: join(folder, `in-${port}`) }, { host: '127.0.0.1', port })
            ),
            ...outward.map((port) =>
                this.#relay({ host: '127.0.0.1', port }, { path: join(folder, `out-${port}`) })
            )
        ];
    }

    /**
     * @param pid - a process in the namespace
     * @param inward - ports there that are reached here
     * @param outward - ports here that are reached there
     */
    static async start(
        pid: number,
        folder: string,
        inward: readonly number[],
        outward: readonly number[]
    ): Promise<Relay> {
        const child = spawn(
            'nsenter',
            [
                `--net=/proc/${pid}/ns/net`,
                ...['setpriv', '--pdeathsig', 'KILL', process.execPath, '-e', script, folder],
                ...[JSON.stringify(inward), JSON.stringify(outward)]
            ],
            { stdio: ['ignore', 'pipe', 'inherit'] }
        );
        await once(child.stdout, 'data');
        const relay = new Relay(child, folder, inward, outward);
        await Promise.all(
            relay.#servers.filter(({ listening }) => !listening).map((server) => once(server, 'listening'))
        );
        return relay;
    }

    async close(): Promise<void> {
        this.#sockets.forEach((socket) => socket.destroy());
        await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
        const ended = once(this.#child, 'exit');
        this.#child.kill('SIGKILL');
        await ended;
    }

    #relay(to: { path: string } | { host: string; port: number }, from: object): Server {
        return createServer((one) => {
            const other = connect(to);
            one.pipe(other).pipe(one);
            for (const each of [one, other]) {
                this.#sockets.add(each);
                each.once('close', () => this.#sockets.delete(each));
                each.on('error', () => [one, other].forEach((socket) => socket.destroy()));
            }
        }).listen(from);
    }
}
