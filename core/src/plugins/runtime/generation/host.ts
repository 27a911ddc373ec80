/** Makes generations of plugins, and keeps what they share: the journal and the contracts. */
import { viewSettings } from '@portico/sdk/host';

import { Contracts } from '../partners/contracts.ts';
import type { PluginHostPorts } from '../ports.ts';
import { createJournal } from '../records/journal.ts';
import type { PluginHost } from './generation.ts';
import { PluginGeneration } from './plugin-generation.ts';

/** Creates the host side of plugins. */
export function createPluginHost(ports: PluginHostPorts): PluginHost {
    const journal = createJournal(ports.db, ports.http.recorder, () => ports.clock.now());
    const contracts = new Contracts((plugin) => ports.gateway.gate(plugin));
    return {
        prepare: (options) => PluginGeneration.prepare({ ports, journal, contracts }, options),
        contracts,
        view: viewSettings,
        recover: () => journal.recover()
    };
}
