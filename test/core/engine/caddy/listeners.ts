import { type AddressInfo, createServer, type Server } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { keyOf, listenersOf, probeListeners } from '../../../../core/src/engine/caddy/listeners.ts';
import { freePort } from '../../../support/ports.ts';

export const lab = Lab.script();
const { describe, it, afterEach } = lab;

const listening = (...listen: unknown[]): readonly string[] =>
    listenersOf({ apps: { http: { servers: { a: { listen } } } } }).map(keyOf);

describe('listenersOf', () => {
    it('reads every form of a TCP or UDP listen address', () => {
        expect(
            listening(
                ':80',
                '127.0.0.1:81',
                '[::1]:82',
                'localhost:83',
                'tcp/:84',
                'tcp4/0.0.0.0:85',
                'udp/:86',
                '127.0.0.1:90-92'
            )
        ).to.equal([
            ':80',
            '127.0.0.1:81',
            '[::1]:82',
            'localhost:83',
            ':84',
            '0.0.0.0:85',
            'udp/:86',
            '127.0.0.1:90',
            '127.0.0.1:91',
            '127.0.0.1:92'
        ]);
    });

    it('leaves to the engine what only the engine can judge', () => {
        expect(
            listening(
                'unix//run/x.sock',
                '{env.HOST}:80',
                ':65536',
                ':9-1',
                ':1-60000',
                'fd/3',
                '',
                7,
                null,
                ':80:80'
            )
        ).to.equal([]);
    });

    it('adds HTTP/3 where the engine would serve HTTPS', () => {
        const server = (more: object): readonly string[] =>
            listenersOf({
                apps: { http: { https_port: 8443, servers: { a: { listen: [':8443', ':8080'], ...more } } } }
            }).map(keyOf);
        expect(server({})).to.equal([':8443', 'udp/:8443', ':8080']);
        expect(server({ protocols: ['h1', 'h2'] })).to.equal([':8443', ':8080']);
        expect(server({ tls_connection_policies: [{}] })).to.equal([
            ':8443',
            'udp/:8443',
            ':8080',
            'udp/:8080'
        ]);
    });

    it('finds nothing in a configuration of another shape', () => {
        for (const config of [
            {},
            { apps: null },
            { apps: { http: [] } },
            { apps: { http: { servers: { a: null, b: { listen: 'x' } } } } }
        ]) {
            expect(listenersOf(config)).to.equal([]);
        }
    });
});

describe('probeListeners', () => {
    const servers: Server[] = [];
    afterEach(() =>
        Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done))))
    );

    const occupied = async (): Promise<number> => {
        const server = createServer();
        servers.push(server);
        await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
        return (server.address() as AddressInfo).port;
    };

    it('finds a taken address, also behind one for every address', async () => {
        const port = await occupied();
        const engine = { pid: null, listeners: [] };
        for (const host of ['127.0.0.1', '0.0.0.0']) {
            const problems = await probeListeners([{ network: 'tcp', host, port }], engine);
            expect(problems).to.have.length(1);
            expect(problems[0]).to.match(
                new RegExp(
                    `^listening on ${host}:${port}: the address is in use by \\S+ \\(process ${process.pid}\\)$`
                )
            );
        }
    });

    it('lets the engine keep what it holds itself', async () => {
        const port = await occupied();
        expect(
            await probeListeners([{ network: 'tcp', host: '127.0.0.1', port }], {
                pid: process.pid,
                listeners: []
            })
        ).to.equal([]);
    });

    it('finds an address that the machine does not have', async () => {
        expect(
            await probeListeners([{ network: 'tcp', host: '192.0.2.1', port: 80 }], {
                pid: null,
                listeners: []
            })
        ).to.equal(['listening on 192.0.2.1:80: the machine has no such address']);
    });

    it('leaves free addresses free', async () => {
        const port = await freePort();
        for (const network of ['tcp', 'udp'] as const) {
            for (const host of ['127.0.0.1', '']) {
                expect(
                    await probeListeners(
                        [
                            { network, host, port },
                            { network, host, port }
                        ],
                        { pid: null, listeners: [] }
                    )
                ).to.equal([]);
            }
        }
    });
});
