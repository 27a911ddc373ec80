import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import process from 'node:process';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createMachine } from '../../../../extensions/monitoring/src/machine.ts';
import { listPorts, scopeOf } from '../../../../extensions/monitoring/src/processes/ports.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('listPorts', () => {
    it('finds sockets of both protocols and versions with their process', async () => {
        const four = createServer().listen(0, '0.0.0.0');
        const six = createServer().listen(0, '::1');
        const udp = createSocket('udp4').bind(0, '127.0.0.1');
        await Promise.all([once(four, 'listening'), once(six, 'listening'), once(udp, 'listening')]);
        const found = (await listPorts(createMachine())).filter(({ pid }) => pid === process.pid);
        const portOf = (server: { address(): unknown }): number =>
            (server.address() as { port: number }).port;
        const shown = found.map(({ protocol, address, port, scope }) => [protocol, address, port, scope]);
        expect(shown).to.include([
            ['tcp', '0.0.0.0', portOf(four), 'all'],
            ['tcp', '::1', portOf(six), 'loopback'],
            ['udp', '127.0.0.1', portOf(udp), 'loopback']
        ]);
        four.close();
        six.close();
        udp.close();
    });
});

describe('scopeOf', () => {
    it('goes by the address', () => {
        const scopes = {
            loopback: ['127.0.0.53', '::1', '::ffff:127.0.0.1'],
            private: ['10.1.2.3', '172.16.0.1', '192.168.1.1', '100.64.0.1', 'fd00::1', 'fe80::1'],
            all: ['0.0.0.0', '::', '203.0.113.1', '172.32.0.1', '100.128.0.1', '2001:db8::1']
        };
        for (const [scope, addresses] of Object.entries(scopes)) {
            for (const address of addresses) {
                expect<string>(scopeOf(address), address).to.equal(scope);
            }
        }
    });
});
