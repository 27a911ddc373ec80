/** The program that every HTTP figure is compared with: plain hapi with bodies from memory. */
import type { AddressInfo } from 'node:net';

import { server as createHapi } from '@hapi/hapi';

import { asChild } from './child.ts';

/** The bodies by path: an object that hapi serialises for each request, or a finished text. */
export type Bodies = Readonly<Record<string, { readonly object: object } | { readonly text: string }>>;

asChild(async (bodies: Bodies) => {
    const hapi = createHapi({ host: '127.0.0.1', port: 0 });
    for (const [path, body] of Object.entries(bodies)) {
        hapi.route({
            method: 'GET',
            path,
            handler: (_request, h) =>
                'object' in body ? body.object : h.response(body.text).type('application/json')
        });
    }
    await hapi.start();
    return (hapi.listener.address() as AddressInfo).port;
});
