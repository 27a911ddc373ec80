import type { EngineVersion } from '../port.ts';
import { atLeast } from './version.ts';

/** What some versions of the engine can do and others cannot. Nothing else about a configuration depends on the version. */
export interface EngineFeatures {
    /** 2.7: streams of an old configuration live on for a while after a reload. Before, every reload closes every WebSocket. */
    readonly streamCloseDelay: boolean;
    /** 2.8: on-demand certificates are permitted by a module; before, by the field `ask`, which later versions drop. */
    readonly permissionModule: boolean;
    /** 2.8: the policy `weighted_round_robin`. Before, an upstream is listed as often as its weight says. */
    readonly weightedRoundRobin: boolean;
    /** 2.11: a TLS upstream gets its own address as Host unless the configuration says otherwise; before, the client's. */
    readonly rewritesHostForTls: boolean;
    /** 2.7: HTTP/3 whose listener survives a reload. */
    readonly http3: boolean;
}

/**
 * What an engine of this version can do. No version can fold the case of a name before it looks it up in the table: all of them answer a
 * Host with a capital letter or a trailing dot by 421.
 * @param version - null (built from source) counts as the newest
 */
export const engineFeatures = (version: EngineVersion | null): EngineFeatures => ({
    streamCloseDelay: atLeast(version, 2, 7),
    permissionModule: atLeast(version, 2, 8),
    weightedRoundRobin: atLeast(version, 2, 8),
    rewritesHostForTls: atLeast(version, 2, 11),
    http3: atLeast(version, 2, 7)
});
