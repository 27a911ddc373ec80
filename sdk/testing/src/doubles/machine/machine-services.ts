/** The services of the machine that runs the test: real processes, which outlive the plugin and end with the test. */
import {
    retireSupervisor,
    type ServiceCommand,
    type ServiceStatus,
    SupervisedServices
} from '@portico/core/plugin-runtime';

/** Services as processes under a supervisor of the test's own. @internal */
export class MachineServices extends SupervisedServices {
    readonly #folder: string;
    /** Who has put a service. */
    readonly #owners = new Set<string>();

    constructor(folder: string) {
        super({ folder, log: { warn: () => undefined } });
        this.#folder = folder;
    }

    override put(owner: string, name: string, command: ServiceCommand): Promise<ServiceStatus> {
        this.#owners.add(owner);
        return super.put(owner, name, command);
    }

    /** Ends every service, and the supervisor with its watchdog. */
    async end(): Promise<void> {
        for (const owner of this.#owners) {
            for (const { name } of await this.list(owner)) {
                await this.remove(owner, name);
            }
        }
        await this.close();
        if (this.#owners.size > 0) {
            await retireSupervisor(this.#folder);
        }
    }
}
