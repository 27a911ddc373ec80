/** Doors of the plugin's own realm in a test. What they start is the kit's, and held by a scope. */
import type { Grants } from '../boundary/grants.ts';
import type { LocalDoors } from '../boundary/protocol.ts';
import { Scope } from '../boundary/scope.ts';
import type { TestDatabase } from './database.ts';
import type { FaultSwitch } from './faults.ts';
import { createTestFiles } from './files.ts';
import type { Watch } from './leftovers.ts';
import { createNetworkDoors, type NetworkFake } from './network.ts';
import { createProgramDoors, type ProgramsFake } from './programs.ts';

export interface LocalOptions {
    readonly grants: Grants;
    readonly dataDir: string;
    /** What the plugin thinks is the machine's root. */
    readonly machine: string;
    readonly network: NetworkFake;
    readonly programs: ProgramsFake;
    readonly faults: FaultSwitch;
    readonly watch: Watch;
    /** Aborts when the generation ends. */
    readonly signal: AbortSignal;
    database(): Promise<TestDatabase>;
}

/** @returns the doors, and how to end what stood on a grant that is gone */
export function createLocalDoors({
    grants,
    dataDir,
    machine,
    network,
    programs,
    faults,
    watch,
    signal,
    database
}: LocalOptions): { readonly local: LocalDoors; revoke(): void } {
    const scope = new Scope();
    const { outside } = watch;
    const net = createNetworkDoors(network, { grants, scope, signal });
    const run = createProgramDoors(programs, { grants, scope, folder: dataDir });
    const inside =
        <T>(work: (em: never) => Promise<T>) =>
        (em: never): Promise<T> =>
            watch.run(() => work(em));
    return {
        revoke: () => net.revoke(),
        local: {
            db: {
                read: faults.wrap('db.read', (work) =>
                    outside(async () => (await database()).read(inside(work) as never))
                ) as LocalDoors['db']['read'],
                write: faults.wrap('db.write', (work) =>
                    outside(async () => (await database()).write(inside(work) as never))
                ) as LocalDoors['db']['write']
            },
            fetch: faults.wrap('fetch', (input, init) => outside(() => net.fetch(input as Request, init))),
            dial: (target) =>
                outside(() => {
                    const fault = faults.of('dial');
                    if (fault === null) {
                        return net.dial(target as never);
                    }
                    const socket = net.dial();
                    fault.catch((error: unknown) => socket.destroy(error as Error));
                    return socket;
                }),
            files: (root) =>
                Object.fromEntries(
                    Object.entries(createTestFiles(root, { grants, scope, base: machine, own: dataDir })).map(
                        ([name, door]) => [
                            name,
                            faults.wrap('files', (...input) =>
                                outside(() =>
                                    (door as (...input: readonly unknown[]) => Promise<unknown>)(...input)
                                )
                            )
                        ]
                    )
                ) as unknown as ReturnType<LocalDoors['files']>,
            exec: faults.wrap('exec', (file, args, options) => outside(() => run.exec(file, args, options))),
            spawn: faults.wrap('spawn', (file, args, options) =>
                outside(() => run.spawn(file, args, options))
            ),
            release: async () => {
                const release = await scope.release();
                await (await database().catch(() => undefined))?.close();
                return release;
            }
        }
    };
}
