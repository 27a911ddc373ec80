/**
 * What the engine is asked to serve: one `Site` for each host row, without anything that only the panel needs.
 * A site is immutable; a change is a new object. All names are lower-case A-labels, already validated and normalised.
 */

/** What answers requests to a site. */
export type SiteType = 'proxy' | 'redirect' | 'static' | 'php';
/** Where a site's certificates come from: ACME, the engine's own authority, or an uploaded or issued certificate. */
export type SslMode = 'auto' | 'internal' | 'certificate';

/** One address a proxy sends to. `address` is `host:port`, optionally with `http://`, `https://` or `h2c://`, or `unix/<absolute path>`. */
export interface Upstream {
    readonly address: string;
    /** Share of the traffic, for a proxy only under the policy `weighted`; 1 to 1,000. */
    readonly weight: number;
}

/** How an upstream is picked. */
export type BalancingPolicy =
    'round_robin' | 'least_conn' | 'ip_hash' | 'first' | 'random' | 'header' | 'cookie' | 'weighted';

/** How requests are spread over several upstreams. */
export interface LoadBalancing {
    readonly policy: BalancingPolicy;
    /** Name of the header or cookie that the policies `header` and `cookie` look at; null for the others. */
    readonly key: string | null;
    /** Further upstreams tried after a failure to connect; 0 to 10. */
    readonly retries: number;
    /** For how long another upstream is looked for; 0 to 300 s. */
    readonly tryDurationSeconds: number;
}

/** How upstreams are checked. */
export interface HealthCheck {
    /** Path and query of the active check; null: no active check. */
    readonly path: string | null;
    readonly intervalSeconds: number;
    readonly timeoutSeconds: number;
    /** Status that counts as healthy: 100 to 599, or a class as 1 to 5 (2 means 2xx). */
    readonly expectStatus: number;
    /** Passive: so many failures within `failDurationSeconds` take an upstream out; null: no passive check. */
    readonly passive: { readonly maxFails: number; readonly failDurationSeconds: number } | null;
}

/** A path prefix with an upstream of its own. */
export interface Location {
    /** Path prefix, on a segment's border: `/api` matches `/api` and `/api/x`, not `/apis`. */
    readonly path: string;
    readonly upstream: string;
    readonly stripPrefix: boolean;
}

/** One change of a header. */
export interface HeaderOperation {
    readonly op: 'set' | 'add' | 'delete';
    readonly name: string;
    /** Empty for `delete`. */
    readonly value: string;
}

/** Who may see a site. */
export interface SiteAccess {
    /** Addresses or CIDR ranges; an empty list lets every address in, several mean any of them. */
    readonly allow: readonly string[];
    /** Addresses or CIDR ranges; wins over `allow`. */
    readonly deny: readonly string[];
    /** `hash` is bcrypt. */
    readonly basicAuth: readonly { readonly username: string; readonly hash: string }[];
    readonly forwardAuth: { readonly url: string; readonly copyHeaders: readonly string[] } | null;
}

/** Cross-origin access (Fetch standard). */
export interface Cors {
    /** Exact origins, or the single entry `*`. */
    readonly origins: readonly string[];
    readonly methods: readonly string[];
    readonly headers: readonly string[];
    readonly credentials: boolean;
    readonly maxAgeSeconds: number;
}

/** Seconds; null keeps the engine's default. */
export interface Timeouts {
    readonly connectSeconds: number | null;
    readonly readSeconds: number | null;
    readonly writeSeconds: number | null;
}

/** A page that a site answers an error with. */
export interface ErrorPage {
    /** 400 to 599. */
    readonly status: number;
    /** HTML, sent with that status, whether the upstream or the engine made the error. */
    readonly body: string;
}

/** The scripts of a site. It has either `fastcgi` or `upstreams`; each address is `host:port` or `unix/<absolute path>`. */
export interface PhpContent {
    readonly root: string;
    readonly fastcgi?: string;
    /** Requests are spread over these by their weights. At least one. */
    readonly upstreams?: readonly Upstream[];
    readonly index: readonly string[];
}

/** One site as the engine serves it: a host with its defaults filled in. It never changes after it was made. */
export interface Site {
    /** The host's id. */
    readonly id: number;
    /** A lower-case DNS name, or `*.` before one. */
    readonly domain: string;
    readonly aliases: readonly string[];
    readonly type: SiteType;
    readonly enabled: boolean;
    /** While true, every request is answered 503. */
    readonly maintenance: boolean;
    /** Empty unless `type` is `proxy`. */
    readonly upstreams: readonly Upstream[];
    readonly ssl: boolean;
    readonly sslMode: SslMode;
    readonly certificateId: number | null;
    readonly forceHttps: boolean;
    readonly hsts: boolean;
    readonly loadBalancing: LoadBalancing | null;
    readonly healthCheck: HealthCheck | null;
    readonly locations: readonly Location[];
    readonly headers: {
        readonly request: readonly HeaderOperation[];
        readonly response: readonly HeaderOperation[];
    };
    readonly access: SiteAccess;
    readonly cors: Cors | null;
    readonly securityHeaders: boolean;
    readonly compression: boolean;
    readonly bodyLimitBytes: number | null;
    readonly timeouts: Timeouts | null;
    readonly errorPages: readonly ErrorPage[];
    readonly redirect: {
        readonly to: string;
        readonly code: 301 | 302 | 307 | 308;
        readonly keepPath: boolean;
    } | null;
    readonly static: {
        readonly root: string;
        readonly browse: boolean;
        readonly index: readonly string[];
        readonly spaFallback: boolean;
    } | null;
    readonly php: PhpContent | null;
    /** Engine-native handlers, put before the site's own handler. */
    readonly advanced: readonly Readonly<Record<string, unknown>>[];
}

/** The fragments of one plugin. */
export interface PluginFragments {
    /** Handlers in the engine's own language. Every request to a host that is served passes them, before whatever the host itself says. */
    readonly handlers: readonly Readonly<Record<string, unknown>>[];
    /** Apps of the engine by name: what a handler of the same module needs beside it. */
    readonly apps: Readonly<Record<string, unknown>>;
}

/** The fragments of engine configuration by the name of the plugin that gave them. */
export type EngineFragments = Readonly<Record<string, PluginFragments>>;

/** The settings that the engine's configuration is rendered from. */
export interface EngineSettings {
    readonly httpPort: number;
    readonly httpsPort: number;
    readonly acmeEmail: string | null;
    /** Directory URL of the ACME server; null: the engine's own default. */
    readonly acmeDirectory: string | null;
    readonly acmeEab: { readonly keyId: string; readonly macKey: string } | null;
    /** Whether each request is recorded in the access log. */
    readonly accessLog: boolean;
    /** Fragments by plugin; absent when no plugin has any. Only the engine service sets it. */
    readonly fragments?: EngineFragments;
}

/** A certificate that the engine serves by SNI. The PEM texts are in the engine's folder as `<id>-<fingerprint>.crt` and `.key`, 0600. */
export interface SiteCertificate {
    readonly id: number;
    /** Lower-case hexadecimal SHA-256 of the leaf: names the file, so that a new certificate is a new path. */
    readonly fingerprint: string;
    readonly names: readonly string[];
}
