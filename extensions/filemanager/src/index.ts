/** Files of the machine: browse, search, edit, upload, archive, trash and a terminal. */
import { definePlugin } from '@portico/sdk';

import { CleanUp } from './clean-up.ts';
import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerArchiveRoutes } from './routes/archives.ts';
import { registerBatchRoutes } from './routes/batch.ts';
import { registerBrowseRoutes } from './routes/browse.ts';
import { registerChecksumRoutes } from './routes/checksums.ts';
import { registerContentRoutes } from './routes/content.ts';
import { registerContentSearchRoutes } from './routes/content-search.ts';
import { registerFavouriteRoutes } from './routes/favourites.ts';
import { registerFetchRoutes } from './routes/fetching.ts';
import { registerFolderRoutes } from './routes/folders.ts';
import { registerLinkRoutes } from './routes/links.ts';
import { registerMovingRoutes } from './routes/moving.ts';
import { registerPermissionRoutes } from './routes/permissions.ts';
import { registerPreviewRoutes } from './routes/preview.ts';
import { registerRecordingRoutes } from './routes/recordings.ts';
import { registerRemovalRoutes } from './routes/removal.ts';
import { registerShareRoutes } from './routes/shares.ts';
import { registerTerminalRoutes } from './routes/terminals.ts';
import { registerTrashRoutes } from './routes/trash.ts';
import { registerUploadRoutes } from './routes/uploads.ts';
import { registerVersionRoutes } from './routes/versions.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** The plugin. */
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
