/** Files of the machine: browse, search, edit, upload, archive, trash and a terminal. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerBrowseRoutes } from './routes/browse.ts';
import { registerBatchRoutes } from './routes/changes/batch.ts';
import { registerFetchRoutes } from './routes/changes/fetching.ts';
import { registerFolderRoutes } from './routes/changes/folders.ts';
import { registerLinkRoutes } from './routes/changes/links.ts';
import { registerMovingRoutes } from './routes/changes/moving.ts';
import { registerPermissionRoutes } from './routes/changes/permissions.ts';
import { registerRemovalRoutes } from './routes/changes/removal.ts';
import { registerTrashRoutes } from './routes/changes/trash.ts';
import { registerArchiveRoutes } from './routes/content/archives.ts';
import { registerChecksumRoutes } from './routes/content/checksums.ts';
import { registerContentRoutes } from './routes/content/content.ts';
import { registerContentSearchRoutes } from './routes/content/content-search.ts';
import { registerPreviewRoutes } from './routes/content/preview.ts';
import { registerUploadRoutes } from './routes/content/uploads.ts';
import { registerVersionRoutes } from './routes/content/versions.ts';
import { registerFavouriteRoutes } from './routes/favourites.ts';
import { registerRecordingRoutes } from './routes/recordings.ts';
import { registerShareRoutes } from './routes/shares.ts';
import { registerTerminalRoutes } from './routes/terminals.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { CleanUp } from './trash/clean-up.ts';

/** The plugin `filemanager`: what it stores, and what it starts. */
export default definePlugin({
    settings,
    entities,
    migrations,
    setup(ctx) {
        const services = createServices(ctx);
        ctx.assets({ folder: 'assets' });
        registerBrowseRoutes(ctx, services);
        registerContentRoutes(ctx, services);
        registerContentSearchRoutes(ctx, services);
        registerPreviewRoutes(ctx, services);
        registerFolderRoutes(ctx, services);
        registerMovingRoutes(ctx, services);
        registerBatchRoutes(ctx, services);
        registerPermissionRoutes(ctx, services);
        registerChecksumRoutes(ctx, services);
        registerVersionRoutes(ctx, services);
        registerLinkRoutes(ctx, services);
        registerRemovalRoutes(ctx, services);
        registerTrashRoutes(ctx, services);
        registerArchiveRoutes(ctx, services);
        registerFetchRoutes(ctx, services);
        registerUploadRoutes(ctx, services);
        registerFavouriteRoutes(ctx, services);
        registerShareRoutes(ctx, services);
        registerTerminalRoutes(ctx, services);
        registerRecordingRoutes(ctx, services);
        registerHealthChecks(ctx, services);
        const cleanUp = new CleanUp(ctx, services);
        ctx.onStart(() => cleanUp.start());
        ctx.onStop(() => cleanUp.finished());
    }
});
