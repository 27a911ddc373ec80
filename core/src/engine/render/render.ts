import { hashOf } from '@portico/sdk';

import { tableHash } from '../files/table/hash.ts';
import type { EngineConfig } from '../port.ts';
import type { Site, SiteCertificate } from '../site.ts';
import { byName, Coverage, coveringWildcard } from './certificate-choice.ts';
import { compile } from './compile/compile.ts';
import type { CompileContext } from './compile/context.ts';
import { type CompiledSite, compileSite } from './compile/site.ts';
import { compileProfile } from './profile/chain.ts';
import type { Profile } from './profile/profile.ts';

/** Everything that a configuration is rendered from. */
export interface RenderState extends CompileContext {
    readonly sites: Iterable<Site>;
    readonly certificates: Iterable<SiteCertificate>;
}

/** A configuration and its table. */
export interface Rendered {
    readonly config: EngineConfig;
    /** SHA-256 of the canonical JSON of `config`. */
    readonly configHash: string;
    /** Name (a wildcard as `*.example.com`) to entry. */
    readonly table: ReadonlyMap<string, string>;
    /** A hash that is the same for equal tables in any order. */
    readonly tableHash: string;
}

/** Renders everything from scratch. Pure. @throws Error when two sites have one name */
export const render = (state: RenderState): Rendered =>
    renderCompiled(Array.from(state.sites, compileSite), state.certificates, state);

/** Renders from sites that are already compiled. */
export const renderCompiled = (
    sites: Iterable<CompiledSite>,
    certificates: Iterable<SiteCertificate>,
    context: CompileContext
): Rendered => {
    const table = new Map<string, string>();
    const profiles = new Map<string, Profile>();
    const byMode = {
        none: [] as string[],
        auto: [] as string[],
        internal: [] as string[],
        wildcard: [] as string[],
        certificate: [] as string[]
    };
    const chosen = new Map<string, number>();
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
            if (tls === 'certificate' && site.certificateId !== null) {
                chosen.set(name, site.certificateId);
            }
        }
    }

    const wildcards = new Set(byMode.wildcard);
    const loaded = new Map(
        Array.from(certificates)
            .filter(({ id }) => used.has(id))
            .sort((a, b) => a.id - b.id)
            .map((certificate) => [certificate.id, certificate])
    );
    const coverage = new Coverage(loaded.values());
    const names = {
        internal: byMode.internal.sort(),
        wildcards: byMode.wildcard.sort(),
        managed: byMode.auto.filter((name) => wildcards.has(coveringWildcard(name))).sort(),
        certificates: [...loaded.values()],
        choices: [...chosen]
            .flatMap(([name, id]) => {
                const fingerprint = loaded.get(id)?.fingerprint;
                return fingerprint !== undefined && coverage.isContested({ name, fingerprint })
                    ? [{ name, fingerprint }]
                    : [];
            })
            .sort(byName)
    };
    const config = compile(
        [...profiles.values()].sort(byId).map((profile) => compileProfile(profile, context)),
        names,
        context
    );
    return { config, configHash: hashOf(config), table, tableHash: tableHash(table) };
};

/** One site's rendering for people: its table entries, the handlers of its profile and its part of the TLS configuration. */
export const explain = (site: Site, context: CompileContext): EngineConfig => {
    const compiled = compileSite(site);
    const named = (tls: string): readonly string[] =>
        compiled.names.filter((name) => name.tls === tls).map(({ name }) => name);
    const { handle, pause } = compileProfile(compiled.profile, context);
    return {
        table: Object.fromEntries(compiled.names.map(({ name, entry }): [string, string] => [name, entry])),
        profile: { id: compiled.profile.id, handle, ...(pause !== null && { maintenance: pause }) },
        tls: {
            onDemand: [...named('auto'), ...named('internal')],
            internal: [...named('internal'), ...named('wildcard')],
            certificateId: compiled.certificateId
        }
    };
};

/** Compares two objects by id, in the order of code units, for `sort`. */
export const byId = (a: { readonly id: string }, b: { readonly id: string }): number =>
    a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
