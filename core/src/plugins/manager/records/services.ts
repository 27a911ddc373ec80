/** The services of plugins, as an admin sees and ends them: they outlive the plugin that made them. */
import { Grants } from '@portico/sdk/host';

import { ownerOf, type ServicesPort, type ServiceStatus } from '../../../services/port.ts';
import { PluginServices, serviceFailure } from '../../runtime/programs/services.ts';
import { askedOf } from '../consent/capabilities.ts';
import type { PluginRecord } from './plugin.ts';

type Owner = Pick<PluginRecord, 'name' | 'package'>;

/** The services of each plugin's record. */
export class RecordedServices {
    readonly #services: ServicesPort;

    constructor(services: ServicesPort) {
        this.#services = services;
    }

    /** By name; null when what keeps them does not answer. */
    list({ name, package: from }: Owner): Promise<readonly ServiceStatus[] | null> {
        return this.#services.list(ownerOf(name, from)).catch(() => null);
    }

    /** Stops what stands on a grant that the record no longer has, whether the plugin runs or not. */
    async revoke(record: PluginRecord): Promise<void> {
        const { name, seen, grants } = record;
        await new PluginServices({
            grants: new Grants(name, askedOf(seen.manifest), () => grants),
            services: this.#services,
            owner: ownerOf(name, record.package),
            used: () => undefined
        }).revoke();
    }

    /** Ends all services of a plugin and forgets them. @throws SERVICES_UNAVAILABLE 50308 */
    async purge({ name, package: from }: Owner): Promise<void> {
        const owner = ownerOf(name, from);
        await told(async () => {
            for (const service of await this.#services.list(owner)) {
                await this.#services.remove(owner, service.name);
            }
        });
    }

    /** Gives the services of one package to another one that takes over its record. They go on. @throws SERVICES_UNAVAILABLE 50308 */
    async adopt(from: Owner, to: Owner): Promise<void> {
        await told(() =>
            this.#services.adopt(ownerOf(from.name, from.package), ownerOf(to.name, to.package))
        );
    }

    /** One sentence about the services that go on without their plugin; none where there are none. */
    async remaining(owners: readonly Owner[]): Promise<readonly string[]> {
        const lists = await Promise.all(owners.map((owner) => this.list(owner)));
        const names = lists
            .flatMap((list) => list ?? [])
            .filter(({ state }) => state !== 'stopped')
            .map(({ name }) => name);
        return names.length === 0
            ? []
            : [`These services go on: ${names.join(', ')}. They end when the plugin's data are deleted`];
    }
}

/** Does the work, and turns an error of the services into what an admin is told. */
async function told(work: () => Promise<void>): Promise<void> {
    try {
        await work();
    } catch (error) {
        throw serviceFailure(error, '');
    }
}
