import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { probeListeners } from '../../../../core/src/engine/caddy/listeners.ts';
import { bindWhenFree, isTakenByConnection } from '../../../../core/src/platform/address/ephemeral-port.ts';
import { createFront, listen } from '../../../../core/src/server/gateway/front.ts';
import { freePort } from '../../../support/ports.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

describe('a port that an outgoing connection has', () => {
    let peer: Server;
    let connection: Socket;
    let port: number;

    beforeEach(async () => {
        peer = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
        await once(peer, 'listening');
        connection = connect((peer.address() as AddressInfo).port, '127.0.0.1');
        await once(connection, 'connect');
        port = connection.localPort ?? 0;
    });

    afterEach(async () => {
        connection.resetAndDestroy();
        await new Promise((resolve) => peer.close(resolve));
    });

    it('is told from one on which something listens, and from a free one', async () => {
        expect(isTakenByConnection(port)).to.be.true();
        expect(isTakenByConnection((peer.address() as AddressInfo).port)).to.be.false();
        expect(isTakenByConnection(await freePort())).to.be.false();
    });

    it('is waited for by the panel, and bound when the connection ends', async () => {
        const front = createFront();
        const bound = listen(front, '127.0.0.1', port);
        await new Promise((resolve) => setTimeout(resolve, 50));
        expect(front.listening).to.be.false();
        connection.resetAndDestroy();
        expect((await bound).port).to.equal(port);
        await new Promise((resolve) => front.close(resolve));
    });

    it('is waited for before the engine gets a configuration that names it', async () => {
        const listeners = [{ network: 'tcp', host: '127.0.0.1', port }] as const;
        const problems = probeListeners(listeners, { pid: null, listeners: [] });
        connection.resetAndDestroy();
        expect(await problems).to.equal([]);
    });

    it('is given up after the limit, and at once when something listens on it', async () => {
        let attempts = 0;
        const refuse = async (): Promise<never> => {
            attempts += 1;
            throw Object.assign(new Error('taken'), { code: 'EADDRINUSE' });
        };
        await expect(bindWhenFree(port, refuse, 300)).to.reject('taken');
        expect(attempts).to.be.above(1);
        attempts = 0;
        await expect(bindWhenFree((peer.address() as AddressInfo).port, refuse, 60_000)).to.reject('taken');
        expect(attempts).to.equal(1);
    });
});
