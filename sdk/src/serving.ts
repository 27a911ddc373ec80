/** What a plugin may do with hosts and certificates. What it makes is owned by it, is listed so, and stays when the plugin goes. */
import type { Actor } from './route.ts';

/** A host as the API shows it; every other field of the API is there too. */
export interface Host {
    readonly id: number;
    readonly version: number;
    readonly domain: string;
    readonly upstream: string | null;
    readonly enabled: boolean;
    /** The plugin that made it; null for people's own. */
    readonly owner: string | null;
    readonly state: 'applied' | 'pending' | 'error' | 'disabled';
    readonly [field: string]: unknown;
}

/** A change of a host that is durable and serves. */
export interface AppliedHost {
    readonly host: Host;
    readonly applied: boolean;
    /** False: the engine kept every connection. */
    readonly reloaded: boolean;
    readonly revision: number;
}

/** One address that a host forwards to, as the engine sees it now. */
export interface UpstreamState {
    readonly address: string;
    /** In flight: what a switch waits for before it ends the old release. */
    readonly requests: number;
    readonly healthy: boolean;
}

/** Needs the capability `hosts`: `own` covers what the plugin made, `read` and `write` all. Paths and sockets in a host need the plugin's `files` or `sockets` too. */
export interface HostsDoor {
    list(filter?: { readonly owner?: string; readonly domain?: string }): Promise<readonly Host[]>;
    /** @param as - acts for this actor, who must be allowed to */
    create(
        host: { readonly domain: string; readonly [field: string]: unknown },
        as?: Actor
    ): Promise<AppliedHost>;
    /** @throws VERSION_STALE 41200 when `version` is not the newest */
    update(
        id: number,
        change: Readonly<Record<string, unknown>>,
        options?: { readonly version?: number; readonly as?: Actor }
    ): Promise<AppliedHost>;
    remove(id: number, options?: { readonly version?: number; readonly as?: Actor }): Promise<void>;
    upstreams(id: number): Promise<readonly UpstreamState[]>;
}

/** A certificate without its key. */
export interface Certificate {
    readonly id: number;
    readonly name: string;
    readonly domains: readonly string[];
    readonly notAfter: Date;
    readonly owner: string | null;
}

/** Needs the capability `certificates`. */
export interface CertificatesDoor {
    list(filter?: { readonly owner?: string; readonly domain?: string }): Promise<readonly Certificate[]>;
    /** PEM texts. */
    upload(certificate: {
        readonly name: string;
        readonly certificate: string;
        readonly key: string;
    }): Promise<Certificate>;
    remove(id: number): Promise<void>;
}
