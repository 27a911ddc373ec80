import { entryText, type TableEntry } from '../../files/table/entry.ts';
import { folderOf } from '../../files/table/name.ts';
import type { Site } from '../../site.ts';
import { behaviourOf, type Profile, profileId } from '../profile/profile.ts';

/** Where a name's certificate comes from. `wildcard`: the engine's own authority, at load. */
export type NameTls = 'none' | 'auto' | 'internal' | 'wildcard' | 'certificate';

/** One name of a site: its table entry, and where its certificate comes from. */
export interface CompiledName {
    readonly name: string;
    readonly entry: string;
    readonly tls: NameTls;
}

/** What one site adds to the configuration: table entries, a profile, and a certificate to load. */
export interface CompiledSite {
    readonly profile: Profile;
    readonly names: readonly CompiledName[];
    /** The certificate to load for the site; null: none. It does not depend on `enabled`, so that enabling and disabling need no reload. */
    readonly certificateId: number | null;
}

/** Compiles one site. Pure. @throws Error when a name is malformed */
export const compileSite = (site: Site): CompiledSite => {
    const { behaviour, dial } = behaviourOf(site);
    const id = profileId(behaviour);
    const state: TableEntry['state'] = !site.enabled ? 'off' : site.maintenance ? 'maintenance' : 'on';
    return {
        profile: { id, behaviour },
        names: [site.domain, ...site.aliases].map((name) => {
            // The check of the table's folder: a name that could not be written is refused before anything is loaded.
            folderOf(name);
            const tls = nameTls(site, name);
            return { name, tls, entry: entryText({ state, tls: entryTls[tls], profile: id, dial }) };
        }),
        certificateId: site.ssl && site.sslMode === 'certificate' ? site.certificateId : null
    };
};

const entryTls: Readonly<Record<NameTls, TableEntry['tls']>> = {
    none: 'none',
    auto: 'demand',
    internal: 'demand',
    wildcard: 'certificate',
    certificate: 'certificate'
};

const nameTls = (site: Site, name: string): NameTls => {
    if (!site.ssl) {
        return 'none';
    }

    if (site.sslMode === 'certificate') {
        return 'certificate';
    }

    if (name.startsWith('*.')) {
        // A public authority issues wildcards by DNS challenge only; the host then has the `sslMode` `certificate`.
        return site.sslMode === 'internal' ? 'wildcard' : 'none';
    }

    return site.sslMode;
};
