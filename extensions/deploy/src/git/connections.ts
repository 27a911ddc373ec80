/** How repositories of a host are reached. */
import { errors } from '@portico/sdk';

import type { ProjectConfig } from '../projects/schema.ts';
import { type Address, hostOf, parseAddress } from './address.ts';
import type { Remote } from './git.ts';

/** Finds what opens a repository. */
export class Connections {
    /** Refuses a connection that is none of the repository's host. @throws VALIDATION_FAILED 40001 */
    async check({ connection }: ProjectConfig['source'], address: Address): Promise<void> {
        if (connection !== null) {
            throw errors.invalid([
                { path: 'source.connection', message: `There is no connection for ${hostOf(address)}` }
            ]);
        }
    }

    /** Where the repository of a project is, and what opens it. @throws REPOSITORY_REFUSED 42250 */
    async remote({ url }: ProjectConfig['source']): Promise<Remote> {
        return { address: parseAddress(url), credentials: null };
    }
}
