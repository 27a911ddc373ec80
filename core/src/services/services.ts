/** Chooses what keeps the panel's services. */
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';

import type { ServicesPort } from './port.ts';
import { type SupervisedOptions, SupervisedServices } from './supervised.ts';
import { SystemdServices } from './systemd/systemd-services.ts';
import { unitPrograms } from './systemd/unit.ts';
import { unitFolder } from './systemd/unit-files.ts';
import { isSystemdFirst, takeFromSystemd } from './takeover.ts';

/** How the services of a panel are kept. */
export interface ServicesConfig {
    readonly dataDir: string;
    /** `auto`: by systemd where it can; `supervisor`: always by the panel's own supervisor. */
    readonly services: 'auto' | 'supervisor';
}

/** The services of the panel of a data folder. */
export function createServices(
    { dataDir, services }: ServicesConfig,
    log: SupervisedOptions['log']
): ServicesPort {
    const folder = join(dataDir, 'services');
    return services === 'auto' && canUseSystemd()
        ? new SystemdServices({ folder, log })
        : new SupervisedServices({ folder, log, prepare: () => takeFromSystemd(folder) });
}

/** Whether this process may add units to systemd. */
function canUseSystemd(): boolean {
    if (!isSystemdFirst() || process.getuid?.() !== 0) {
        return false;
    }
    try {
        accessSync(unitFolder, constants.W_OK);
        return Object.values(unitPrograms).every((path) => existsSync(path));
    } catch {
        return false; // it is missing, or cannot be written to
    }
}
