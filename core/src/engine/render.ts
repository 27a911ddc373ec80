/** From rows to the engine's configuration and table, at once and without memory. */
import type { CompileContext } from './compile-context.ts';
import type { EngineConfig } from './port.ts';
import type { Site, SiteCertificate } from './site.ts';

export interface RenderState extends CompileContext {
    readonly sites: Iterable<Site>;
    readonly certificates: Iterable<SiteCertificate>;
}

export interface Rendered {
    readonly config: EngineConfig;
    /** SHA-256 of the canonical JSON of `config`. */
    readonly configHash: string;
    /** Name (a wildcard as `*.example.com`) to entry. */
    readonly table: ReadonlyMap<string, string>;
    /** The same for equal tables, whatever the order. */
    readonly tableHash: string;
}

/** Renders everything from scratch. Pure. @throws Error when two sites have one name */
export const render = (_state: RenderState): Rendered => {
    throw new Error('not written yet');
};

/** What one site becomes, for reading by humans: its names, table entry, profile and TLS parts. */
export const explain = (_site: Site, _context: CompileContext): EngineConfig => {
    throw new Error('not written yet');
};
