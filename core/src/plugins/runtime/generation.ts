/** One generation of one plugin: what it is made of, and what can be asked of it. */
import type { Manifest, PluginPackage } from '@portico/registry';
import type { Health, PluginDefinition } from '@portico/sdk';
import type {
    DefinitionDocument,
    GenerationDocument,
    Guest,
    HostApi,
    LocalApi,
    Release
} from '@portico/sdk/host';

import type { HttpServer } from '../../server/http/server.ts';
import type { Confine } from './isolation/error-owner.ts';
import type { Contracts } from './partners/contracts.ts';

export type Capabilities = NonNullable<Manifest['capabilities']>;

/** What a generation is made of. */
export interface GenerationOptions {
    readonly plugin: PluginPackage;
    /** Real path of the package. */
    readonly folder: string;
    readonly definition: PluginDefinition;
    /** The plugin's own folder; made when it is missing. A probe gets a copy. */
    readonly dataDir: string;
    /** As `Generation.seal` gave them; secrets are sealed. */
    readonly settings: Readonly<Record<string, unknown>>;
    /** What the admin granted, as of now: asked at every use. What the manifest does not ask for counts for nothing. */
    grants(): Capabilities;
    /** Called before the first change that it accepts once it is mounted, and again until it succeeds: its data is then more than what it began with. */
    readonly accepted?: () => Promise<void>;
    /** Where the plugin's code runs. Default: in this thread, called directly. */
    readonly runtime?: GuestRuntime;
    /** Around every call of the plugin's code, and of the panel's by it; default: nothing. */
    readonly confine?: Confine;
    /** Aborts when it is no longer wanted: a `setup` that hangs is not waited for. */
    readonly signal?: AbortSignal;
    /** Milliseconds; defaults: setup 10 s, start 30 s, stop 8 s, one health check 5 s. */
    readonly timing?: Partial<GenerationTiming>;
}

/** The two sides that a plugin's code calls: what crosses to the panel, and what works where the code runs. */
export interface GuestSides {
    readonly hostApi: HostApi;
    readonly local: LocalApi;
}

/** Makes the guest of a generation. `inThread` makes one in this thread, with the given sides. */
export type GuestRuntime = (
    sides: GuestSides,
    inThread: (sides: GuestSides) => Guest
) => Guest | Promise<Guest>;

/** Milliseconds that a plugin may take. */
export interface GenerationTiming {
    readonly setupMs: number;
    readonly startMs: number;
    readonly stopMs: number;
    readonly healthMs: number;
}

/** How one health check ended; one that fails or hangs is a failed one. */
export interface HealthReport extends Health {
    readonly name: string;
}

/** A capability that a plugin used without having it. */
export interface Refusal {
    /** As the manifest would name it: `exec: git`. */
    readonly capability: string;
    readonly count: number;
    /** When it was refused last, milliseconds since 1970. */
    readonly at: number;
}

/** What the end of a generation let go of. */
export interface ReleaseReport extends Release {
    /** Requests that had to be cut. */
    readonly cut: number;
    /** What `onStop` failed with. */
    readonly failures: readonly string[];
}

export interface Generation {
    readonly name: string;
    readonly version: string;
    readonly definition: DefinitionDocument;
    /** What `setup` registered. */
    readonly document: GenerationDocument;
    /** Its server, for whoever swaps generations itself. */
    readonly server: HttpServer;
    /** Routes and taps go live, and partners hear of it. Call after `start`: then the first request finds everything. */
    mount(): Promise<void>;
    /** Runs `onStart`. @throws what it throws, or Error when it takes too long */
    start(): Promise<void>;
    /** Runs every health check at once. */
    health(): Promise<readonly HealthReport[]>;
    /** Proves a change of settings and gives what is to be kept of them, with the secrets sealed. @throws VALIDATION_FAILED 40001 */
    seal(change: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
    /** Accepted settings, as `seal` gave them, reach the plugin. */
    apply(settings: Readonly<Record<string, unknown>>): Promise<void>;
    /** Grants changed: what is open under one that is gone is ended. */
    revoke(): Promise<void>;
    /** Everything that it holds now, by kind. */
    held(): readonly { readonly kind: string; readonly name: string }[];
    /** What it was refused since it was prepared, the latest last; no more than a hundred capabilities. */
    refused(): readonly Refusal[];
    /** Takes routes and taps away, stops, and lets go of everything. Never throws. The second call gives the first report. */
    close(reason: string): Promise<ReleaseReport>;
}

/** Makes generations. */
export interface PluginHost {
    /**
     * Opens the database and migrates it, reads the settings, runs `setup`. What was opened is let go of when it fails.
     * @throws Error with `stage` and `code`: SETTINGS_REQUIRED, SETTINGS_INVALID, MIGRATION_FAILED, SETUP_FAILED, SETUP_TIMEOUT, REGISTRATION_INVALID
     */
    prepare(options: GenerationOptions): Promise<Generation>;
    /** The contracts of what runs. */
    readonly contracts: Contracts;
    /** Settings that are kept, as anybody may read them: secrets are `{ set: true }`. */
    view(settings: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
    /** Turns what a killed panel left in the journal into entries of the audit log. Once, at boot. */
    recover(): Promise<number>;
}

/** Why a generation could not be prepared. */
export class GenerationFault extends Error {
    readonly stage: 'loaded' | 'mounted' | 'running';
    readonly code: string;
    readonly data: unknown;

    constructor(
        stage: GenerationFault['stage'],
        code: string,
        message: string,
        options: { readonly cause?: unknown; readonly data?: unknown } = {}
    ) {
        super(message, options.cause === undefined ? undefined : { cause: options.cause });
        this.name = 'GenerationFault';
        this.stage = stage;
        this.code = code;
        this.data = options.data ?? null;
    }
}
