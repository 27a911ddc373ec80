import type { Contracts } from '../partners/contracts.ts';
import type { PluginHostPorts } from '../ports.ts';
import type { Journal } from '../records/journal.ts';

/** What all generations of one panel share. */
export interface Shared {
    readonly ports: PluginHostPorts;
    readonly journal: Journal;
    readonly contracts: Contracts;
}
