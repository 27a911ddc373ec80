/** Chooses what keeps the panel's services. */
import { join } from 'node:path';

import type { ServicesPort } from './port.ts';
import { type SupervisedOptions, SupervisedServices } from './supervised.ts';

/** The services of the panel of a data folder. */
export function createServices(dataDir: string, log: SupervisedOptions['log']): ServicesPort {
    return new SupervisedServices({ folder: join(dataDir, 'services'), log });
}
