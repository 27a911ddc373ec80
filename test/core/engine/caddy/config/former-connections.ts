import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { mayHaveConnections } from '../../../../../core/src/engine/caddy/config/former-connections.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('mayHaveConnections', () => {
    for (const host of ['127.0.0.1', '::']) {
        it(`finds a connection on a port of ${host} until it has ended, and not one of another port`, async () => {
            const server = createServer({ allowHalfOpen: true }).listen({ port: 0, host });
            await once(server, 'listening');
            const { port } = server.address() as AddressInfo;
            const client = connect(port, '127.0.0.1');
            const [accepted] = (await once(server, 'connection')) as [{ destroy(): void }];
            expect(await mayHaveConnections(new Set([port]))).to.be.true();
            client.end();
            expect(await mayHaveConnections(new Set([port, 1]))).to.be.true();
            accepted.destroy();
            client.destroy();
            server.close();
            await once(server, 'close');
            // On a machine with many sockets the answer is always that there may be some.
            const isKnown = !(await mayHaveConnections(new Set([1])));
            await until(async () => !isKnown || !(await mayHaveConnections(new Set([port]))));
        });
    }
});
