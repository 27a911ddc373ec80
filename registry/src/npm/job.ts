/** What is asked of the child process that speaks to the npm registry, and what it says back. Plain data: it crosses a process. */
import type { InstallCode } from '../failure.ts';
import type { InstallLimits, InstallPhase, Offer, Signature } from '../ports.ts';
import type { Host } from '../resolve/resolve.ts';

/** Which registry, and for which panel. */
export interface Access {
    readonly registryUrl: string;
    readonly registryToken: string | null;
    readonly host: Host;
    readonly reserved: readonly string[];
    readonly limits: InstallLimits;
}

/** Fetch, verify and unpack one package with its dependencies. */
export interface InstallJob extends Access {
    readonly kind: 'install';
    /** Empty and its own: the archives go to `cache`, the package to `package`. */
    readonly staging: string;
    readonly source:
        | { readonly package: string; readonly version: string | null; readonly integrity: string | null }
        | { readonly archive: string; readonly integrity: string | null };
}

/** Say what the registry offers. */
export interface CatalogueJob extends Access {
    readonly kind: 'catalogue';
    readonly installed: readonly { readonly package: string; readonly version: string }[];
    readonly search: string | null;
}

/** What the child process can do. */
export type Job = InstallJob | CatalogueJob;

/** A dependency that was fetched. */
export interface FetchedDependency {
    readonly package: string;
    readonly version: string;
    readonly signature: Signature;
}

/** What an install job fetched. */
export interface InstallResult {
    readonly package: string;
    readonly version: string;
    readonly integrity: string;
    readonly signature: Signature;
    readonly provenance: string | null;
    readonly dependencies: readonly FetchedDependency[];
}

/** What a catalogue job found. */
export interface CatalogueResult {
    readonly offers: readonly Offer[];
    readonly searchable: boolean;
    readonly failures: readonly { readonly package: string; readonly message: string }[];
}

/** What the child says. */
export type Message =
    | { readonly phase: InstallPhase }
    | { readonly done: InstallResult | CatalogueResult }
    | { readonly failed: { readonly code: InstallCode; readonly message: string } };
