import { hashOf } from '@portico/sdk';

import { TableHash } from '../../files/table/hash.ts';
import type { TableMove, TablePatch } from '../../files/table/table.ts';
import type { EngineConfig } from '../../port.ts';
import type { EngineSettings, Site, SiteCertificate } from '../../site.ts';
import { compile } from '../compile/compile.ts';
import type { CompileContext } from '../compile/context.ts';
import { type CompiledProfile, compiledProfiles } from '../compile/dispatch.ts';
import { type CompiledSite, compileSite } from '../compile/site.ts';
import { loadedNames, type TlsNames } from '../compile/tls.ts';
import { compileProfile } from '../profile/chain.ts';
import type { Profile } from '../profile/profile.ts';
import { byId, renderCompiled, type Rendered } from '../render.ts';
import { TlsNeeds } from './tls.ts';

/** Sites, settings and certificates to change. An id that is not named stays. */
export interface ProjectionChange {
    /** null removes. */
    readonly sites?: readonly { readonly id: number; readonly site: Site | null }[];
    readonly settings?: EngineSettings;
    readonly certificates?: readonly { readonly id: number; readonly certificate: SiteCertificate | null }[];
}

/** A change that the projection has and the engine does not have yet. */
export interface ProjectionStep {
    /** Empty when no entry changes. */
    readonly table: TablePatch;
    /** Whether the running configuration lacks something that this or an earlier step needs. If so, load `config()` before the table changes. */
    readonly needsReload: boolean;
    /** The configuration to load: everything that is wanted, and the profiles that entries on disk may still name. */
    config(): EngineConfig;
    /** Undoes the change. @throws Error unless it is the newest step that is not undone */
    undo(): void;
}

interface Compiled {
    readonly config: EngineConfig;
    readonly hash: () => string;
    readonly profiles: ReadonlySet<string>;
    readonly names: TlsNames;
}

interface Running extends Compiled {
    readonly settings: EngineSettings;
}

interface Reversal {
    readonly sites: readonly { readonly id: number; readonly site: CompiledSite | null }[];
    readonly settings: EngineSettings;
    readonly certificates: readonly { readonly id: number; readonly certificate: SiteCertificate | null }[];
}

/** What the engine should serve, kept up to date change by change: the cost of a change does not grow with the number of sites. */
export class Projection {
    #context: CompileContext;
    readonly #sites = new Map<number, CompiledSite>();
    readonly #table = new Map<string, string>();
    readonly #tableHash = new TableHash();
    readonly #profiles = new Map<string, { readonly profile: Profile; users: number }>();
    /** Profiles that no site uses since the last load, and that the running configuration still has. */
    readonly #retained = new Map<string, Profile>();
    /** Keys (kind and name) of everything that the running configuration lacks, or has although it should not. */
    readonly #lacking = new Set<string>();
    readonly #tls = new TlsNeeds(this.#lacking);
    #running: Running | null = null;
    #memo: Compiled | null = null;
    #steps = 0;

    constructor(context: CompileContext) {
        this.#context = context;
    }

    /** Whether the running configuration lacks something. True until the first `loaded()`. */
    get needsReload(): boolean {
        return this.#running === null || this.#lacking.size > 0;
    }

    /** The whole table, name to entry. It changes with the projection; do not keep it. */
    get table(): ReadonlyMap<string, string> {
        return this.#table;
    }

    tableHash(): string {
        return this.#tableHash.toString();
    }

    /** Applies a change. @throws Error when two sites have the same name, or a name or address is malformed; then nothing changes */
    change(change: ProjectionChange): ProjectionStep {
        const sites = (change.sites ?? []).map(({ id, site }) => ({
            id,
            site: site === null ? null : this.#share(compileSite(site))
        }));
        const { reversal, moves } = this.#assign({
            sites,
            settings: change.settings ?? this.#context.settings,
            certificates: change.certificates ?? []
        });
        this.#steps += 1;
        const number = this.#steps;
        return {
            table: moves,
            needsReload: this.needsReload,
            config: () => this.config(),
            undo: () => {
                if (this.#steps !== number) {
                    throw new Error('only the newest step can be undone');
                }

                this.#assign(reversal);
                this.#steps -= 1;
            }
        };
    }

    /** The configuration to load now. While nothing is lacking, it equals the loaded one. */
    config(): EngineConfig {
        return this.#compiled().config;
    }

    /** SHA-256 of the canonical JSON of `config()`. */
    configHash(): string {
        return this.#compiled().hash();
    }

    /** Notes that the engine runs `config()`. A profile that was dropped since the load before stays in it until the next load. */
    loaded(): void {
        this.#take({ ...this.#compiled(), settings: this.#context.settings });
    }

    /**
     * Accepts the configuration that the engine runs as the loaded one, if it has everything that is wanted and, beyond that, only
     * what earlier sites left behind.
     * @returns false when `config()` has to be loaded; then nothing changes
     */
    adopt(running: EngineConfig): boolean {
        const extra = compiledProfiles(running).filter(({ id }) => !this.#profiles.has(id));
        const candidate = this.#compile(
            [...this.#wantedProfiles(), ...extra],
            this.#tls.namesWith(loadedNames(running))
        );
        if (candidate.hash() !== hashOf(running)) {
            return false;
        }

        this.#take({ ...candidate, settings: this.#context.settings });
        return this.#lacking.size === 0;
    }

    /** What a new panel would render from the same rows: without profiles that no site uses. */
    rendered(): Rendered {
        return renderCompiled(this.#sites.values(), this.#tls.certificates.values(), this.#context);
    }

    #take(running: Running): void {
        this.#running = running;
        this.#retained.clear();
        this.#lacking.clear();
        this.#tls.take(running.names);
    }

    #compiled(): Compiled {
        if (this.#running !== null && this.#lacking.size === 0) {
            return this.#running;
        }

        this.#memo ??= this.#compile(
            [
                ...this.#wantedProfiles(),
                ...Array.from(this.#retained.values(), (profile) => compileProfile(profile, this.#context))
            ],
            this.#tls.names()
        );
        return this.#memo;
    }

    #wantedProfiles(): readonly CompiledProfile[] {
        return Array.from(this.#profiles.values(), ({ profile }) => compileProfile(profile, this.#context));
    }

    #compile(profiles: readonly CompiledProfile[], names: TlsNames): Compiled {
        const config = compile([...profiles].sort(byId), names, this.#context);
        let hash: string | null = null;
        return {
            config,
            hash: () => (hash ??= hashOf(config)),
            profiles: new Set(profiles.map(({ id }) => id)),
            names
        };
    }

    /** Sites with the same behaviour share one profile object. */
    #share(site: CompiledSite): CompiledSite {
        const known = this.#profiles.get(site.profile.id);
        if (known === undefined) {
            // A profile that cannot be compiled is refused here, before anything changes.
            compileProfile(site.profile, this.#context);
            return site;
        }

        return { ...site, profile: known.profile };
    }

    /** Makes a change, and returns how to undo it. Checks only what the change touched. */
    #assign(change: Reversal): { readonly reversal: Reversal; readonly moves: TablePatch } {
        this.#refuseDuplicates(change.sites);
        const before = new Map<string, string | null>();
        const reversal = {
            sites: change.sites.map(({ id }) => ({ id, site: this.#sites.get(id) ?? null })),
            settings: this.#context.settings,
            certificates: change.certificates.map(({ id }) => ({
                id,
                certificate: this.#tls.certificates.get(id) ?? null
            }))
        };
        const former = reversal.sites.flatMap(({ site }) => site ?? []);
        const latter = change.sites.flatMap(({ site }) => site ?? []);

        this.#memo = null;
        former.forEach((site) => this.#remove(site, before));
        latter.forEach((site) => this.#add(site, before));
        change.sites.forEach(({ id, site }) =>
            site === null ? this.#sites.delete(id) : this.#sites.set(id, site)
        );
        change.certificates.forEach(({ id, certificate }) => this.#tls.setCertificate(id, certificate));
        this.#context = { ...this.#context, settings: change.settings };

        this.#mark(
            'settings',
            this.#running !== null &&
                this.#running.settings !== change.settings &&
                hashOf(this.#running.settings) !== hashOf(change.settings)
        );
        change.certificates.forEach(({ id }) => this.#tls.checkCertificate(id));
        for (const site of [...former, ...latter]) {
            this.#checkProfile(site.profile.id);
            this.#tls.check(site);
        }

        return { reversal, moves: this.#moves(before) };
    }

    #refuseDuplicates(sites: Reversal['sites']): void {
        const leaving = new Set(
            sites.flatMap(({ id }) => this.#sites.get(id)?.names.map(({ name }) => name) ?? [])
        );
        const coming = new Set<string>();
        for (const name of sites.flatMap(({ site }) => site?.names.map((compiled) => compiled.name) ?? [])) {
            if (coming.has(name) || (this.#table.has(name) && !leaving.has(name))) {
                throw new Error(`two sites have the name ${name}`);
            }

            coming.add(name);
        }
    }

    #moves(before: ReadonlyMap<string, string | null>): TablePatch {
        const moves: TableMove[] = [];
        for (const [name, from] of before) {
            const to = this.#table.get(name) ?? null;
            if (from !== to) {
                moves.push({ name, from, to });
            }
        }

        return moves;
    }

    #remove(site: CompiledSite, before: Map<string, string | null>): void {
        const holder = this.#profiles.get(site.profile.id);
        if (holder !== undefined) {
            holder.users -= 1;
            if (holder.users === 0) {
                this.#profiles.delete(site.profile.id);
                if (this.#running?.profiles.has(site.profile.id) === true) {
                    this.#retained.set(site.profile.id, site.profile);
                }
            }
        }

        for (const { name, entry } of site.names) {
            before.set(name, entry);
            this.#table.delete(name);
            this.#tableHash.remove(name, entry);
        }

        this.#tls.remove(site);
    }

    #add(site: CompiledSite, before: Map<string, string | null>): void {
        const holder = this.#profiles.get(site.profile.id) ?? { profile: site.profile, users: 0 };
        holder.users += 1;
        this.#profiles.set(site.profile.id, holder);
        this.#retained.delete(site.profile.id);
        for (const { name, entry } of site.names) {
            if (!before.has(name)) {
                before.set(name, null);
            }

            this.#table.set(name, entry);
            this.#tableHash.add(name, entry);
        }

        this.#tls.add(site);
    }

    #mark(key: string, lacking: boolean): void {
        if (lacking) {
            this.#lacking.add(key);
        } else {
            this.#lacking.delete(key);
        }
    }

    #checkProfile(id: string): void {
        this.#mark(
            `profile ${id}`,
            this.#running !== null && this.#profiles.has(id) && !this.#running.profiles.has(id)
        );
    }
}
