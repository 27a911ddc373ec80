import { adoptTerminalStyles } from '@portico/page-kit/vite';
import { defineConfig } from 'vite';

/** How the page is built: one module that the panel's document loads, and parts that are loaded when they are wanted. */
export default defineConfig({
    base: './',
    publicDir: false,
    plugins: [adoptTerminalStyles()],
    resolve: { conditions: ['portico-source', 'module', 'browser', 'production'] },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
        target: 'es2024',
        outDir: '../assets',
        emptyOutDir: true,
        assetsInlineLimit: 0,
        modulePreload: false,
        rolldownOptions: {
            input: { page: new URL('src/page.tsx', import.meta.url).pathname },
            external: ['@portico/sdk/page'],
            preserveEntrySignatures: false,
            output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' }
        }
    }
});
