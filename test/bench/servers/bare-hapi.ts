/** The floor of every HTTP figure: hapi as it comes, with bodies from memory. */
import type { AddressInfo } from 'node:net';

import { server as createHapi } from '@hapi/hapi';

import { asChild } from './child.ts';

/** By path: an object that hapi turns into text for each request, or text that is ready. */
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
