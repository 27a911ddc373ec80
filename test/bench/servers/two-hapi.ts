/** Two bare hapi servers behind one socket: the first answers by itself, the second by the hand-over that the gateway makes, and nothing else. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { type Server, server as createHapi } from '@hapi/hapi';

import { asChild } from './child.ts';

const second = '/second/';

function bare(path: string): Server {
    const hapi = createHapi({ autoListen: false, listener: createServer() });
    hapi.route({ method: 'GET', path, handler: () => ({ text: 'Hello' }) });
    return hapi;
}

asChild(async () => {
    const servers = { own: bare('/first/plain'), other: bare(`${second}plain`) };
    await Promise.all(Object.values(servers).map((server) => server.start()));
    const front = createServer((request, response) => {
        const { listener } = request.url?.startsWith(second) === true ? servers.other : servers.own;
        listener.emit('request', request, response);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    return (front.address() as AddressInfo).port;
});
