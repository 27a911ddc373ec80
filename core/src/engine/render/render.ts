/** From rows to the engine's configuration and table, at once and without memory. */
import { hashOf } from './canonical.ts';
import { compile } from './compile.ts';
import type { CompileContext } from './compile-context.ts';
import { compileSite } from './compile-site.ts';
import type { CompiledSite } from './compile-site.ts';
import type { EngineConfig } from '../port.ts';
import { compileProfile } from './profile-chain.ts';
import type { Profile } from './profile.ts';
import type { Site, SiteCertificate } from '../site.ts';
import { tableHash } from '../files/table-hash.ts';

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
export const render = (state: RenderState): Rendered => renderCompiled(Array.from(state.sites, compileSite), state.certificates, state);

/** The same from sites that are compiled already. */
export const renderCompiled = (sites: Iterable<CompiledSite>, certificates: Iterable<SiteCertificate>, context: CompileContext): Rendered => {
    const table = new Map<string, string>();
    const profiles = new Map<string, Profile>();
    const byMode = { none: [] as string[], auto: [] as string[], internal: [] as string[], wildcard: [] as string[], certificate: [] as string[] };
    const used = new Set<number>();
    for (const site of sites) {
        profiles.set(site.profile.id, site.profile);
        if (site.certificateId !== null) {
            used.add(site.certificateId);
        }

        for (const { name, entry, tls } of site.names) {
            if (table.has(name)) {
                throw new Error(`two sites have the name ${name}`);
            }

            table.set(name, entry);
            byMode[tls].push(name);
        }
    }

    const wildcards = new Set(byMode.wildcard);
    const names = {
        internal: byMode.internal.sort(),
        wildcards: byMode.wildcard.sort(),
        managed: byMode.auto.filter((name) => wildcards.has(coveringWildcard(name))).sort(),
        certificates: Array.from(certificates).filter(({ id }) => used.has(id)).sort((a, b) => a.id - b.id)
    };
    const config = compile([...profiles.values()].sort(byId).map((profile) => compileProfile(profile, context)), names, context);
    return { config, configHash: hashOf(config), table, tableHash: tableHash(table) };
};

/** What one site becomes, for reading by humans: its table entries, its profile's handlers and its part of the TLS configuration. */
export const explain = (site: Site, context: CompileContext): EngineConfig => {
    const compiled = compileSite(site);
    const named = (tls: string): readonly string[] => compiled.names.filter((name) => name.tls === tls).map(({ name }) => name);
    const { handle, pause } = compileProfile(compiled.profile, context);
    return {
        table: Object.fromEntries(compiled.names.map(({ name, entry }): [string, string] => [name, entry])),
        profile: { id: compiled.profile.id, handle, ...(pause !== null && { maintenance: pause }) },
        tls: { onDemand: [...named('auto'), ...named('internal')], internal: [...named('internal'), ...named('wildcard')], certificateId: compiled.certificateId }
    };
};

/** The wildcard whose certificate would be taken for this name. */
export const coveringWildcard = (name: string): string => `*${name.slice(name.indexOf('.') < 0 ? name.length : name.indexOf('.'))}`;

export const byId = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
