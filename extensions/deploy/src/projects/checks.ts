/** What of a project the schema cannot check: its repository, what it refers to, and whether its domains are free. */
import { errors } from '@portico/sdk';

import type { Project } from '../deployments/store.ts';
import { parseAddress } from '../git/remote/address.ts';
import type { Services } from '../services.ts';
import type { ProjectInput } from './schema.ts';

/** Refuses a project that cannot be. @throws REPOSITORY_REFUSED 42250; VALIDATION_FAILED 40001; CONFLICT 40900 */
export async function checkProject(
    { git, connections, variables, store }: Pick<Services, 'git' | 'connections' | 'variables' | 'store'>,
    input: ProjectInput,
    before?: Project
): Promise<void> {
    checkKind(input);
    const address = parseAddress(input.source.url);
    if (address.scheme === 'http') {
        await git.open({ address, credentials: null });
    }
    await connections.check(input.source, address);
    if (input.triggers.requiredChecks.length > 0 && (await connections.forgeOf(input.source)) === null) {
        throw errors.invalid([
            {
                path: 'triggers.requiredChecks',
                message: 'They need a connection that says which forge it is for'
            }
        ]);
    }
    await variables.checkGroups(input.envGroups);
    if (input.host !== null) {
        const names = new Set([input.host.domain, ...input.host.aliases].map((name) => name.toLowerCase()));
        for (const { id, config } of await store.everyProject()) {
            const taken = [config.host?.domain ?? '', ...(config.host?.aliases ?? [])].some((name) =>
                names.has(name.toLowerCase())
            );
            if (taken && id !== before?.id) {
                throw errors.conflict('host.domain');
            }
        }
    }
}

/** What the kind of a build does not carry out. @throws VALIDATION_FAILED 40001 */
function checkKind({ build, run, hooks, host, canary }: ProjectInput): void {
    const { kind } = build;
    const isImage = kind === 'dockerfile' || kind === 'compose';
    const isCompose = kind === 'compose';
    const isStatic = kind === 'static' || (kind === 'commands' && run.command === null);
    const faults = [
        [
            kind !== 'dockerfile' && typeof build.dockerfile === 'string',
            'build.dockerfile',
            'It is for the kind dockerfile'
        ],
        [isImage && build.commands !== null, 'build.commands', 'The Dockerfile says how it is built'],
        [isImage && build.install !== null, 'build.install', 'The Dockerfile says how it is built'],
        [isImage && build.output !== null, 'build.output', 'An image is released whole'],
        [
            isImage && run.shared.length > 0,
            'run.shared',
            'Containers have volumes, which a compose file names'
        ],
        [isCompose && run.command !== null, 'run.command', 'The compose file says what runs'],
        [isCompose && run.workers.length > 0, 'run.workers', 'The compose file says what runs'],
        [
            isCompose && hooks.pre.length > 0,
            'hooks.pre',
            'A service of the compose file can run before others'
        ],
        [isCompose && canary !== null, 'canary', 'A compose file is applied in place'],
        [
            kind === 'static' && run.command !== null,
            'run.command',
            'Files are served: set the kind commands for a program'
        ],
        [isStatic && run.port !== null, 'run.port', 'Files are served: no program listens'],
        [isStatic && canary !== null, 'canary', 'It is for programs: files are switched at once'],
        [host === null && canary !== null, 'canary', 'It shares the requests of a host, and there is none']
    ] as const;
    const found = faults.filter(([isFault]) => isFault).map(([, path, message]) => ({ path, message }));
    if (found.length > 0) {
        throw errors.invalid(found);
    }
}
