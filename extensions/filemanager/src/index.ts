/** Files of the machine: browse, search, edit, upload, archive, trash and a terminal. */
import { definePlugin, type Health } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { archiveRoutes } from './routes/archives.ts';
import { browseRoutes } from './routes/browse.ts';
import { changeRoutes } from './routes/changes.ts';
import { contentRoutes } from './routes/content.ts';
import { terminalRoutes } from './routes/terminals.ts';
import { trashRoutes } from './routes/trash.ts';
import { uploadRoutes } from './routes/uploads.ts';
import { createParts, type Parts } from './services.ts';
import { type Ctx, settings } from './settings.ts';

export default definePlugin({
    settings,
    entities,
    migrations,
    setup(ctx) {
        const parts = createParts(ctx);
        [
            browseRoutes,
            contentRoutes,
            changeRoutes,
            trashRoutes,
            archiveRoutes,
            uploadRoutes,
            terminalRoutes
        ].forEach((declare) => declare(parts));
        ctx.health('roots', () => rootsHealth(parts));
        ctx.health('terminal', () => parts.terminals.health());
        let tidied = async (): Promise<void> => undefined;
        ctx.onStart(async () => {
            tidied = await start(ctx, parts);
        });
        ctx.onStop(() => tidied());
    }
});

async function start(ctx: Ctx, { scratch, trash, uploads }: Parts): Promise<() => Promise<void>> {
    await ctx.schedule('expire', { everySeconds: 600, missed: 'run-once' }, async ({ signal }) => {
        await uploads.expire(signal);
        await trash.expire(signal);
    });
    // What was left over is known before the first request adds something; removing it may take a while, and nobody has to wait for that.
    const [sweep, reconcile] = [await scratch.leftOver(), await trash.leftOver()];
    const tidying = (async () => {
        await sweep(ctx.signal);
        await reconcile(ctx.signal);
    })().catch((error: unknown) => {
        if (!ctx.signal.aborted) {
            ctx.log.warn('Left-overs of an earlier end could not be removed', { error: String(error) });
        }
    });
    return () => tidying;
}

async function rootsHealth({ roots }: Parts): Promise<Health> {
    const all = roots.all();
    const missing: string[] = [];
    for (const { name, files } of all) {
        await files.stat('').catch(() => missing.push(name));
    }
    if (all.length === 0) {
        return {
            state: 'degraded',
            evidence: 'No root is set, so there is nothing to see',
            remedy: {
                text: "Name the folders that people may reach in the plugin's settings",
                route: '/api/plugins/filemanager'
            }
        };
    }
    return missing.length === 0
        ? { state: 'ok', evidence: `${all.length} roots` }
        : {
              state: 'degraded',
              evidence: `These roots cannot be opened: ${missing.join(', ')}`,
              remedy: { text: 'Make the folders, grant them to the plugin, or remove the roots' }
          };
}
