/** Exports the data folder of a panel that does not run. The rows are read; no engine is asked or started. */
import { createImportExport, type ImportExportParts } from '../../composition/import-export.ts';
import type { Engine } from '../../engine/change.ts';
import { AcmeAccounts } from '../../features/certificates/acme/accounts.ts';
import { createCertificateSection } from '../../features/certificates/export/export-section.ts';
import { DatabaseCertificateStore } from '../../features/certificates/store.ts';
import { createDnsProviderSection } from '../../features/dns-providers/export-section.ts';
import { DnsProviderStore } from '../../features/dns-providers/store.ts';
import { createHostSection } from '../../features/hosts/export/export-section.ts';
import { DatabaseHostStore } from '../../features/hosts/store.ts';
import { KeptPlugins } from '../../features/import-export/plugins/kept.ts';
import type { PluginCatalogue } from '../../features/import-export/ports.ts';
import type { ExportRequest, ImportExport } from '../../features/import-export/service.ts';
import { createChannelSection } from '../../features/notifications/channels/export-section.ts';
import { ChannelStore } from '../../features/notifications/channels/store.ts';
import type { Call } from '../../platform/call.ts';
import { Records } from '../../plugins/manager/records/records.ts';
import { knownFromRecords } from '../../plugins/manager/settings/portable-plugins.ts';

/** What the export works with. */
export type OfflineExportParts = Omit<
    ImportExportParts,
    'proxy' | 'tasks' | 'plugins' | 'hooks' | 'kept' | 'notify' | 'channels'
>;

/** Exports the sections of the request. @throws VALIDATION_FAILED 40001 for an unknown section */
export async function exportOffline(
    parts: OfflineExportParts,
    request: ExportRequest,
    call: Call
): Promise<Awaited<ReturnType<ImportExport['export']>>> {
    const { db, clock, keyring } = parts;
    const rows = new Map((await new DatabaseHostStore(db, keyring).load()).map((row) => [row.site.id, row]));
    const absent = (): never => {
        throw new TypeError('An export needs no engine');
    };
    // The cast: an export only reads the draft, so the stand-in has no other part of an engine.
    const engine = {
        draft: () => ({ hosts: rows }),
        change: absent,
        tryChange: absent
    } as unknown as Engine & ImportExportParts['proxy']['engine'];
    const dnsProviders = new DnsProviderStore(db, keyring);
    const sections = {
        dnsProviders: createDnsProviderSection({ db, clock, store: dnsProviders, usersOf: () => [] }),
        certificates: createCertificateSection({
            clock,
            store: new DatabaseCertificateStore(db, keyring),
            accounts: new AcmeAccounts(db, keyring, clock),
            providers: () => dnsProviders.list(),
            covers: absent,
            changed: absent
        }),
        hosts: createHostSection({
            engine,
            clock,
            readable: absent,
            hooks: { beforeSave: absent, guard: absent, afterChange: absent },
            safety: absent
        })
    };
    // An export starts no task: the stand-in has no other part of the tasks.
    const tasks = { start: absent } as unknown as ImportExportParts['tasks'];
    const known = knownFromRecords((await Records.open(db)).all(), keyring);
    const plugins: PluginCatalogue = {
        ready: () => Promise.resolve(),
        list: () => known,
        find: (name, packageName) =>
            known.find((plugin) => plugin.name === name && plugin.package === packageName) ?? null,
        prove: absent,
        store: absent,
        follow: absent,
        running: () => null,
        state: () => null,
        requiredBy: () => [],
        install: absent
    };
    return createImportExport({
        ...parts,
        tasks,
        proxy: { engine, sections, adapt: absent },
        kept: new KeptPlugins({ db, clock, keyring }),
        plugins: () => plugins,
        notify: absent,
        channels: createChannelSection({
            store: new ChannelStore(db),
            keyring,
            clock,
            changed: () => undefined // nothing is sent here
        })
    }).export(request, call);
}
