/** The panel's pages: files that the browser loads. They use the public API and nothing else. */
import { definePlugin } from '@portico/sdk';

/** The plugin: it mounts the built pages at the root of the site. */
export default definePlugin({
    setup(ctx) {
        ctx.assets({ folder: 'pages', at: 'root', fallback: 'index.html' });
    }
});
