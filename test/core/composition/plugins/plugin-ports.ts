import { once } from 'node:events';
import { connect } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { panelPort as createPanelPort } from '../../../../core/src/composition/plugins/plugin-ports.ts';
import { createGateway, type Gateway } from '../../../../core/src/server/gateway/gateway.ts';
import { createHttpServer } from '../../../../core/src/server/http/server.ts';
import { createTestPorts } from '../../../support/core/http-ports.ts';
import { realRig, type Rig } from '../../../support/engine/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const panelPort = (
    gateway: Parameters<typeof createPanelPort>[0],
    engine: Parameters<typeof createPanelPort>[1]
): ReturnType<typeof createPanelPort> =>
    createPanelPort(
        gateway,
        engine,
        () => [],
        () => Promise.reject(new Error('nothing is rehearsed here')),
        () => null,
        async () => false
    );

describe('panelPort', () => {
    let rig: Rig;
    let gateway: Gateway;

    before(async () => {
        const ports = createTestPorts();
        const core = createHttpServer({ name: 'core', prefix: '', routes: [], ports });
        gateway = await createGateway({ core, log: ports.log });
        rig = await realRig();
    });

    after(async () => {
        await gateway.close();
        await rig.close();
    });

    it('tells where panel and engine take connections, and nothing that is closed', async () => {
        const port = panelPort(() => gateway, rig.engine);
        const engineOnly = await port.listeners();
        expect(engineOnly.map(({ role }) => role)).to.not.include('panel');
        const { port: own } = await gateway.listen('127.0.0.1', 0);
        const listeners = await port.listeners();
        expect(listeners.slice(0, 3)).to.equal([
            { role: 'panel', protocol: 'tcp', address: '127.0.0.1', port: own },
            { role: 'http', protocol: 'tcp', address: '127.0.0.1', port: rig.port },
            { role: 'https', protocol: 'tcp', address: '127.0.0.1', port: rig.httpsPort }
        ]);
        // HTTP/3, where the engine's version has it: on the port of HTTPS alone.
        expect(
            listeners.slice(3).every(({ role, protocol }) => role === 'https' && protocol === 'udp')
        ).to.be.true();
        for (const { address, port: open } of listeners.filter(({ protocol }) => protocol === 'tcp')) {
            const socket = connect(open, address);
            await once(socket, 'connect');
            socket.destroy();
        }
    });

    it('lists an engine that does not answer by what it was given, and a stopped one not at all', async () => {
        const { engine } = rig;
        const silent = {
            process: () => engine.process(),
            desired: () => engine.desired(),
            configNow: () => new Promise<never>(() => undefined)
        };
        const listed = await panelPort(() => gateway, silent).listeners();
        expect(listed).to.equal(await panelPort(() => gateway, engine).listeners());
        const stopped = { ...silent, process: () => ({ ...engine.process(), pid: null }) };
        const left = await panelPort(() => gateway, stopped).listeners();
        expect(left.map(({ role }) => role)).to.equal(['panel']);
    });
});
