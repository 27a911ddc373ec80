/** Publishes a port of a container on loopback, at a port that the engine finds: the container is made again with it. */
import type { Actor } from '@portico/sdk';

import { withLoopbackPort } from '../compose/edit.ts';
import type { Containers } from '../containers/containers.ts';
import type { StackChanges } from '../stacks/changes.ts';
import type { StackStore } from '../stacks/revisions.ts';
import type { StackRunner } from '../stacks/work.ts';

/** What a port is published of: a container, or a service of a stack. */
export interface PublishedPort {
    readonly container: string | null;
    readonly stack: string | null;
    readonly service: string | null;
    readonly port: number;
}

/** Publishes a port of a container, or of a service of a stack, on the machine. */
export class Publishing {
    readonly #parts: {
        readonly containers: Containers;
        readonly changes: StackChanges;
        readonly runner: StackRunner;
        readonly store: StackStore;
    };

    constructor(parts: {
        readonly containers: Containers;
        readonly changes: StackChanges;
        readonly runner: StackRunner;
        readonly store: StackStore;
    }) {
        this.#parts = parts;
    }

    /** Resolves when the container runs with the port. @throws as a recreate or a deploy; a port on loopback needs no consent */
    async publish(
        { container, stack, service, port }: PublishedPort,
        actor: Actor,
        signal: AbortSignal
    ): Promise<void> {
        const quiet = { signal, progress: () => undefined, log: () => undefined };
        if (container !== null) {
            const added = {
                containerPort: port,
                hostPort: null,
                hostIp: '127.0.0.1',
                protocol: 'tcp'
            } as const;
            await this.#parts.containers.recreateNow(
                container,
                (spec) => ({ ...spec, ports: [...spec.ports, added] }),
                quiet
            );
            return;
        }
        const { changes, runner, store } = this.#parts;
        const name = stack ?? '';
        const { revision } = await store.get(name);
        const { compose } = await store.revision(name, revision);
        const work = await changes.update(
            name,
            {
                compose: withLoopbackPort(compose, service ?? '', port),
                start: true,
                waitSeconds: 60,
                onFailure: 'rollback',
                consent: null
            },
            { actor, plugin: null, ifMatch: null }
        );
        await runner.perform(work, quiet);
    }
}
