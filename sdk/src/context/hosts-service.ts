/** Hosts and certificates for plugins. What a plugin creates has the plugin as its owner, and stays when the plugin goes. */
import type { Actor } from '../routes/route.ts';

/** A host as the API shows it; every other field of the API is there too. */
export interface Host {
    readonly id: number;
    readonly version: number;
    readonly domain: string;
    readonly upstream: string | null;
    readonly enabled: boolean;
    /** The plugin that created it; null when a user did. */
    readonly owner: string | null;
    readonly state: 'applied' | 'pending' | 'error' | 'disabled';
    readonly [field: string]: unknown;
}

/** What a request says of a host: every field of the API, each of them optional in a change. */
export interface HostFields {
    readonly domain?: string | undefined;
    readonly upstream?: string | null | undefined;
    readonly enabled?: boolean | null | undefined;
    readonly [field: string]: unknown;
}

/** A change of a host that is durable and in effect. */
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

/** How an address is asked for its health. */
export interface ProbeOptions {
    /** Path with query; default `/`. */
    readonly path?: string;
    /** Default `GET`. */
    readonly method?: 'GET' | 'HEAD';
    /** 1 to 60 for the whole answer; default 5. */
    readonly timeoutSeconds?: number;
    readonly signal?: AbortSignal;
}

/** What an address answered, whatever its status. */
export interface ProbeAnswer {
    readonly status: number;
    /** Milliseconds until the head of the answer was there. */
    readonly ms: number;
    /** The first 4 KiB, as UTF-8. */
    readonly body: string;
}

/** The account that the engine runs as: what a socket or folder must let in. */
export interface EngineAccount {
    readonly user: string;
    readonly group: string;
}

/** `ctx.hosts`. Needs the capability `hosts`: `own` covers the plugin's own hosts, `read` and `write` all hosts. Paths and sockets in a host need the plugin's `files` or `sockets`, too. */
export interface HostsService {
    /** The hosts that the plugin may see. */
    list(filter?: { readonly owner?: string; readonly domain?: string }): Promise<readonly Host[]>;
    /** Makes a host. With `as` it acts for that actor, who must be allowed to. Resolves when the engine serves it, or says why not in `state`. */
    create(
        host: { readonly domain: string; readonly [field: string]: unknown },
        as?: Actor
    ): Promise<AppliedHost>;
    /** Changes the fields that are named. @throws VERSION_STALE 41200 when `version` is not the newest */
    update(
        id: number,
        change: Readonly<Record<string, unknown>>,
        options?: { readonly version?: number; readonly as?: Actor }
    ): Promise<AppliedHost>;
    /** Removes a host. @throws VERSION_STALE 41200 when `version` is not the newest */
    remove(id: number, options?: { readonly version?: number; readonly as?: Actor }): Promise<void>;
    /** The upstreams of a host as the engine sees them now. */
    upstreams(id: number): Promise<readonly UpstreamState[]>;
    /**
     * Asks an address for its health, as the engine would connect to it: `127.0.0.1:3000`, `https://…` or `unix//run/app.sock`. It is a
     * loopback address, an upstream of a host that `list` gives, or a socket of the capability `sockets`. Redirects are not followed, and
     * certificates are not checked.
     *
     * @throws CAPABILITY_MISSING 50305 for any other address; PROBE_FAILED 50309 when there is no answer
     */
    probe(address: string, options?: ProbeOptions): Promise<ProbeAnswer>;
    /** The engine's account; null where the machine has none for it. */
    account(): Promise<EngineAccount | null>;
}

/** A certificate without its key. */
export interface Certificate {
    readonly id: number;
    readonly name: string;
    readonly domains: readonly string[];
    readonly notAfter: Date;
    readonly owner: string | null;
}

/** `ctx.certificates`. Needs the capability `certificates`. */
export interface CertificatesService {
    /** The certificates that the plugin may see, without their keys. */
    list(filter?: { readonly owner?: string; readonly domain?: string }): Promise<readonly Certificate[]>;
    /** Adds a certificate and its key, both as PEM texts. */
    upload(certificate: {
        readonly name: string;
        readonly certificate: string;
        readonly key: string;
    }): Promise<Certificate>;
    /** Removes a certificate. */
    remove(id: number): Promise<void>;
}
