import { adoptTerminalStyles } from '@portico/page-kit/vite';
import { defineConfig } from 'vite';

// The pages are files of one origin: nothing is inlined, because the panel's policy refuses inline code and data: scripts.
/** How the pages are built. */
export default defineConfig({
    plugins: [adoptTerminalStyles()],
    resolve: { conditions: ['portico-source', 'module', 'browser', 'production'] },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
        target: 'es2024',
        outDir: '../pages',
        emptyOutDir: true,
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false }
    },
    worker: { format: 'es' },
    server: { proxy: { '/api': process.env['PORTICO_PANEL'] ?? 'http://127.0.0.1:39921' } }
});
