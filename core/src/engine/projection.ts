/** What the engine should serve, kept up to date change by change: the cost of a change does not grow with the number of sites. */
import type { CompileContext } from './compile-context.ts';
import type { EngineConfig } from './port.ts';
import type { Rendered } from './render.ts';
import type { EngineSettings, Site, SiteCertificate } from './site.ts';
import type { TablePatch } from './table.ts';

export interface ProjectionChange {
    /** null removes. An id that is not named stays. */
    readonly sites?: readonly { readonly id: number; readonly site: Site | null }[];
    readonly settings?: EngineSettings;
    readonly certificates?: readonly { readonly id: number; readonly certificate: SiteCertificate | null }[];
}

/** A change that is in the projection, and not yet in the engine. */
export interface ProjectionStep {
    /** Empty when no name's entry differs. */
    readonly table: TablePatch;
    /** The running configuration lacks something that the projection (this step and all before it) needs. Load `config()` BEFORE the table's patch. */
    readonly needsReload: boolean;
    /** The configuration to load: all that is wanted, and the profiles that table entries on disk may still name. */
    config(): EngineConfig;
    /** Takes the change out again. Only the newest step that was not undone can be. @throws Error otherwise */
    undo(): void;
}

export interface Projection {
    change(change: ProjectionChange): ProjectionStep;
    /** Whether the running configuration lacks something. True until the first `loaded()`. */
    readonly needsReload: boolean;
    /** What `ProjectionStep.config()` would say now. */
    config(): EngineConfig;
    /** SHA-256 of the canonical JSON of `config()`. */
    configHash(): string;
    /** Whole table: name to entry. Live; not to be kept. */
    readonly table: ReadonlyMap<string, string>;
    tableHash(): string;
    /** Says that the engine runs what `config()` says now. Profiles dropped before this and still in it stay until the next. */
    loaded(): void;
    /** From scratch, without profiles that nobody uses: what a restart of the panel would make of the same rows. */
    rendered(): Rendered;
}

/** An empty projection. */
export const createProjection = (_context: CompileContext): Projection => {
    throw new Error('not written yet');
};
