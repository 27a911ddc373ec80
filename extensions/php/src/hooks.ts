/** The hooks of the core that the plugin taps. */
import { messageOf } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { SiteBackups } from './sites/data/backups.ts';
import { documentOf, readDocument, restoreSite, type SiteDocument } from './sites/data/document.ts';

const item = 'sites';
const leftOut = ['the files of sites', 'the databases of sites'];

/** Takes part in backups, and in sealed exports and imports of the panel, which may hold the values of environments. */
export function registerHooks(ctx: Ctx, services: Services): void {
    registerBackups(ctx, services);
    ctx.hooks.tap('export.collect', async () => {
        const sites: SiteDocument[] = [];
        for (const site of await services.store.all()) {
            if (site.phase === 'ready') {
                sites.push(await documentOf(services, site));
            }
        }
        return [{ name: item, data: { sites }, leftOut }];
    });
    ctx.hooks.tap('import.restore', async ({ items, mode }, { signal }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const problems = await restoreAll(services, given.data, mode, signal).catch((error: unknown) => [
            messageOf(error)
        ]);
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}

function registerBackups(ctx: Ctx, services: Services): void {
    const backups = new SiteBackups(ctx, services);
    ctx.hooks.tap('backup.list', () => backups.list());
    ctx.hooks.tap('backup.collect', ({ only }) => backups.collect(only));
    ctx.hooks.tap('backup.restore', async ({ folder, items }, { signal }) => {
        const results: { item: string; ok: boolean; message?: string }[] = [];
        for (const each of items) {
            try {
                await backups.restore(folder, each, signal);
                results.push({ item: each.name, ok: true });
            } catch (error) {
                results.push({ item: each.name, ok: false, message: messageOf(error) });
            }
        }
        return results;
    });
}

/** Brings the sites of a document back, and with `replace` takes away those that are not in it; their files stay. Gives what went wrong. */
async function restoreAll(
    services: Services,
    data: unknown,
    mode: 'merge' | 'replace',
    signal: AbortSignal
): Promise<readonly string[]> {
    const { sites = [] } = (data ?? {}) as { readonly sites?: readonly unknown[] };
    const documents = sites.map(readDocument);
    const problems: string[] = [];
    if (mode === 'replace') {
        const kept = new Set(documents.map(({ name }) => name));
        for (const site of await services.store.all()) {
            if (!kept.has(site.name)) {
                await services.locks.run(site.id, 'its removal', () => services.creation.remove(site, false));
            }
        }
    }
    for (const document of documents) {
        try {
            await restoreSite(services, document, signal);
        } catch (error) {
            problems.push(`${document.name}: ${messageOf(error)}`);
        }
    }
    return problems;
}
