/** What swaps need, and the phases that they pass. */
import type { Found, LockEntry, PluginPackage } from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type { Parking } from '../../../server/gateway/gateway.ts';
import type { PluginData } from '../data/data-folders.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import type { PluginDataRow } from '../records/entities.ts';
import type { Decision } from '../records/plugin.ts';

/** The phases of a swap, in order. */
export const swapPhases = [
    'probe',
    'parked',
    'stopped',
    'copied',
    'migrated',
    'started',
    'committed'
] as const;
/** A phase of a swap. */
export type SwapPhase = (typeof swapPhases)[number];

/** What a swap needs. */
export interface SwapPorts {
    readonly lifecycle: Lifecycle;
    readonly data: PluginData;
    readonly db: Database;
    readonly clock: Clock;
    readonly gateway: { park(name: string): Parking };
    readonly log: Logger;
    /** Milliseconds that requests under way may take to end; default 8,000. */
    readonly drainMs?: number;
}

/** The code that takes the place of the present one. */
export interface NextCode {
    readonly found: Found;
    readonly plugin: PluginPackage;
    readonly definition: PluginDefinition;
    readonly entry: LockEntry;
    /** The data that it begins with; null for none. */
    readonly source: PluginDataRow | null;
    readonly decision: Decision;
}

/** How a swap goes on, and what it calls on its way. */
export interface SwapOptions {
    /** Cuts requests that do not end in time. */
    readonly force: boolean;
    /** Ends the swap, until the old code is stopped. */
    readonly signal: AbortSignal;
    /** Awaited at each phase: a test ends the process in it. */
    phase(phase: SwapPhase): void | Promise<void>;
    /** Writes what belongs to the commit. */
    also?(tx: Transaction): Promise<void>;
}
