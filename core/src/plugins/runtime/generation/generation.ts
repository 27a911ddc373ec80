/** One generation of one plugin: what it is made from, and what the panel can ask of it. */
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

import type { HttpServer } from '../../../server/http/server.ts';
import type { Confine } from '../isolation/error-owner.ts';
import type { Contracts } from '../partners/contracts.ts';

/** The capabilities of a manifest, or the granted part of them. */
export type Capabilities = NonNullable<Manifest['capabilities']>;

/** What a generation is made from. */
export interface GenerationOptions {
    readonly plugin: PluginPackage;
    /** Real path of the package. */
    readonly folder: string;
    readonly definition: PluginDefinition;
    /** The plugin's own folder, which is created when it is missing. A probe gets a copy. */
    readonly dataDir: string;
    /** Settings as `Generation.seal` returned them; secrets are sealed. */
    readonly settings: Readonly<Record<string, unknown>>;
    /** What the admin grants now; it is asked at every use. A grant that the manifest does not ask for has no effect. */
    grants(): Capabilities;
    /** Called before the first change that the mounted generation accepts, and again until it succeeds: from then on its data differs from the data that it began with. */
    readonly accepted?: () => Promise<void>;
    /** Where the plugin's code runs. Default: in this thread, called directly. */
    readonly runtime?: GuestRuntime;
    /** Wraps every call from the panel to the plugin's code and back; default: nothing. */
    readonly confine?: Confine;
    /** Aborts when the generation is no longer wanted, so that a `setup` that hangs is not waited for. */
    readonly signal?: AbortSignal;
    /** Milliseconds; defaults: setup 10 s, start 30 s, stop 8 s, one health check 5 s. */
    readonly timing?: Partial<GenerationTiming>;
}

/** The two APIs that a plugin's code calls: one crosses to the panel, one works where the code runs. */
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

/** How one health check ended. A check that throws or hangs counts as failed. */
export interface HealthReport extends Health {
    readonly name: string;
}

/** A part of the API that a plugin uses, and that a later version of the panel no longer has. */
export interface Deprecation {
    /** Such as `route notes.list`. */
    readonly member: string;
    /** The version that will not have it; null when that is not known. */
    readonly removedIn: string | null;
    /** Uses since the start. */
    readonly count: number;
}

/** A capability that a plugin tried to use without a grant. */
export interface Refusal {
    /** As the manifest would name it: `exec: git`. */
    readonly capability: string;
    readonly count: number;
    /** Time of the last refusal, milliseconds since 1970. */
    readonly at: number;
}

/** What was released at the end of a generation. */
export interface ReleaseReport extends Release {
    /** How many requests had to be cut. */
    readonly cut: number;
    /** Messages of the errors of `onStop`. */
    readonly failures: readonly string[];
}

/** A prepared plugin: `start` it, `mount` it, and `close` it in the end. */
export interface Generation {
    readonly name: string;
    readonly version: string;
    readonly definition: DefinitionDocument;
    /** What `setup` registered. */
    readonly document: GenerationDocument;
    /** Its HTTP server, for a caller that swaps generations itself. */
    readonly server: HttpServer;
    /** Puts routes and taps in service and tells partners. Call it after `start`, so that the first request finds everything ready. */
    mount(): Promise<void>;
    /** Runs `onStart`. @throws the error of `onStart`, or Error when it takes too long */
    start(): Promise<void>;
    /** Runs every health check at once. */
    health(): Promise<readonly HealthReport[]>;
    /** Validates a change of settings and returns the settings to keep, with the secrets sealed. @throws VALIDATION_FAILED 40001 */
    seal(change: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
    /** Hands accepted settings, as `seal` returned them, to the plugin. */
    apply(settings: Readonly<Record<string, unknown>>): Promise<void>;
    /** Ends whatever is open under a grant that no longer exists. Call it after grants changed. */
    revoke(): Promise<void>;
    /** Everything that it holds now, by kind. */
    held(): readonly { readonly kind: string; readonly name: string }[];
    /** What the plugin was refused since it was prepared, the latest last; at most a hundred capabilities. */
    refused(): readonly Refusal[];
    /** What it used since its start that a later version no longer has. */
    deprecations(): readonly Deprecation[];
    /** Removes routes and taps, stops the plugin and releases everything. Never throws. A second call returns the first report. */
    close(reason: string): Promise<ReleaseReport>;
}

/** Makes and runs the generations of all plugins in this process. */
export interface PluginHost {
    /**
     * Opens the database and migrates it, reads the settings and runs `setup`. After a failure everything that was opened is released.
     * @throws Error with `stage` and `code`: SETTINGS_REQUIRED, SETTINGS_INVALID, MIGRATION_FAILED, SETUP_FAILED, SETUP_TIMEOUT, REGISTRATION_INVALID
     */
    prepare(options: GenerationOptions): Promise<Generation>;
    /** The contracts of the running plugins. */
    readonly contracts: Contracts;
    /** Kept settings in a form that every reader may see: secrets are `{ set: true }`. */
    view(settings: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
    /** Turns the journal rows of a killed panel into entries of the audit log. Called once, at boot. Resolves with their number. */
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
