/** A host, for payloads of hooks. */
import type { Host } from '@portico/sdk';

/** A host that was just created, with this domain. */
export function exampleHost(domain: string): Host {
    return {
        id: 1,
        version: 1,
        domain,
        upstream: '127.0.0.1:3000',
        enabled: true,
        owner: null,
        state: 'applied'
    };
}
