import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { watchFormerConnections } from '../../../../../core/src/engine/caddy/config/former-connections.ts';
import { freePort } from '../../../../support/ports.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

/** So patient that only what ends lets it go on, and on a machine with any number of sockets. */
const patient = { openMs: 60_000, listenMs: 60_000, sockets: Infinity };

describe('watchFormerConnections', () => {
    let port: number;
    let servers: Server[];
    let clients: Socket[];
    /** As each configuration of the engine does, on a socket of its own. */
    const listen = async (): Promise<Server> => {
        const server = createServer().listen({ port, host: '127.0.0.1', reusePort: true });
        servers.push(server);
        await once(server, 'listening');
        return server;
    };
    const visit = async (server: Server): Promise<Socket> => {
        const client = connect(port, '127.0.0.1');
        clients.push(client);
        await once(server, 'connection');
        return client;
    };

    beforeEach(async () => {
        port = await freePort();
        servers = [];
        clients = [];
    });

    afterEach(() => {
        clients.forEach((client) => client.destroy());
        servers.forEach((server) => server.close());
    });

    it('waits until the former listener is closed and its connections have ended, and not for the later ones', async () => {
        const former = await listen();
        const client = await visit(former);
        const drained = watchFormerConnections(new Set([port]), patient);
        const next = await listen();
        let isDrained = false;
        const end = drained().then(() => (isDrained = true));
        await wait(20);
        expect(isDrained).to.be.false();
        former.close();
        await wait(20);
        expect(isDrained).to.be.false();
        await visit(next);
        client.destroy();
        await end;
    });

    it('waits for nothing where the former configuration had no connection, or is still there after the time', async () => {
        const former = await listen();
        const drained = watchFormerConnections(new Set([port]), patient);
        former.close();
        await listen();
        await drained();
        await watchFormerConnections(new Set([port]), { ...patient, listenMs: 1 })();
        await watchFormerConnections(new Set([port]), { openMs: 1, listenMs: 1, sockets: -1 })();
    });
});
