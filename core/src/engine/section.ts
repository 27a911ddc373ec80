/**
 * What a feature puts into an export document, and how it reads its part back. The document itself, its passphrase and its plan belong to
 * `features/import-export`; a feature knows only its own section.
 */
import type { Call } from '../platform/call.ts';
import type { Transaction } from '../platform/database/database.ts';
import type { Invalid } from '../platform/errors.ts';
import type { Draft, Plan } from './change.ts';
import type { EngineSettings, SiteCertificate } from './site.ts';

/** `merge` keeps what the document lacks; `replace` removes it. */
export type ImportMode = 'merge' | 'replace';

/** Takes the secrets of a document while it is made; they are sealed together. */
export interface SecretSink {
    /** `path` names the secret within its section, as `shop.example.com/basicAuth/ann`; once for each path. */
    put(path: string, secret: string): void;
}

/** The opened secrets of a section. */
export interface Secrets {
    get(path: string): string | undefined;
    /** The same as the JSON that it is: undefined when it is not there, null when it is no JSON. */
    json(path: string): unknown;
}

/** What an import does to one thing. */
export type Effect = 'create' | 'update' | 'delete' | 'unchanged';

/** One thing of a document, and what an import does to it. */
export interface Entry {
    readonly effect: Effect;
    /** A name for users: a domain, a user name, a key. */
    readonly name: string;
    /** What differs from the document, and why. */
    readonly notes?: readonly string[];
}

/** What a section plans against. Sections are planned in order; an earlier one leaves here what a later one needs. */
export interface Ground {
    readonly draft: Draft;
    readonly mode: ImportMode;
    readonly call: Call;
    /** Numbers of DNS providers in the document, and what they become; a number that is missing has been left out. Null: the document has none. */
    dnsProviderIds: ReadonlyMap<number, number> | null;
    /** Numbers of certificates in the document, and what they become; a number that is missing has been left out. Null: the document has no certificates. */
    certificateIds: ReadonlyMap<number, number> | null;
    /** As they will be. */
    certificates: ReadonlyMap<number, SiteCertificate>;
    /** As they will be. */
    settings: EngineSettings;
    /** Roles as they will be, with what they may. Null: as they are. */
    roles: ReadonlyMap<string, readonly string[]> | null;
    /** Names of the sections that the document has. */
    readonly sections: ReadonlySet<string>;
}

/** What an import does to a plugin apart from its settings, or did. */
export interface PluginOutcome {
    readonly name: string;
    /** `planned` in a dry run; null: nothing is to be installed. */
    readonly install: 'planned' | 'installed' | 'failed' | null;
    /** Of its own data; `waiting` until it runs. Null: the document has none. */
    readonly data: 'planned' | 'waiting' | 'restored' | 'failed' | null;
    /** Its state after that; null in a dry run, and where it is not there. */
    readonly state: string | null;
    /** Why it is so. */
    readonly notes: readonly string[];
}

/** The run of `Step.follow`. */
export interface Following {
    readonly signal: AbortSignal;
    log(text: string): void;
}

/** A section's part of the change. */
export interface Step {
    readonly entries: readonly Entry[];
    /** What goes through the engine's queue. */
    readonly engine?: Plan;
    /** Writes the rest, in the one transaction. @throws to undo everything */
    commit?(tx: Transaction): Promise<void>;
    /** Called once when everything is durable. */
    done?(): void;
    /** What `follow` will be about. */
    readonly outcomes?: readonly PluginOutcome[];
    /** Long work after the commit. Its failure undoes nothing. Never rejects. */
    follow?(run: Following): Promise<readonly PluginOutcome[]>;
}

/** A section of a document that was read and is valid by itself. */
export interface Incoming {
    /** Against the rows as they are. Synchronous: it is asked again in the engine's queue. @throws VALIDATION_FAILED, FORBIDDEN, STEP_UP_REQUIRED, IN_USE */
    plan(ground: Ground): Step;
    /** Outside of every lock, before the change. @throws REFUSED_BY_PLUGIN */
    guard?(step: Step): Promise<void>;
}

/** The circumstances in which a section is read. */
export interface Reading {
    readonly call: Call;
    readonly mode: ImportMode;
    /** Nothing will be written: no id may be used up. */
    readonly dryRun: boolean;
    /** Plugins that are missing are installed. */
    readonly installPlugins: boolean;
    /** Null: the document has no secrets. */
    readonly secrets: Secrets | null;
    /** Where the section stands, for messages. */
    readonly path: string;
    readonly faults: { add(path: string, message: string): void; readonly list: readonly Invalid[] };
}

/** One part of an export document. */
export interface Section {
    /** Its key in the document. */
    readonly name: string;
    /** What exporting it takes, with secrets also `secrets`; and importing it. */
    readonly permissions: { readonly read: string; readonly write: string; readonly secrets: string };
    /** Sections without which it makes no sense; they are exported along. */
    readonly needs?: readonly string[];
    /** Awaited before anything is collected. */
    ready?(): Promise<void>;
    collect(sink: SecretSink | null): unknown;
    /** Reads its part of a document. Faults go to `faults`; the result is not used then. */
    read(part: unknown, reading: Reading): Incoming | Promise<Incoming>;
}
