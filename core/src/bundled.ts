/** The entry of the panel that `tools/bundle.mjs` has put into a few files. Plugins get the SDK that is part of them. */
import { supplyModules } from '@portico/registry';

supplyModules({
    '@portico/sdk': new URL('./sdk.js', import.meta.url).href,
    '@portico/sdk/db': new URL('./sdk-db.js', import.meta.url).href
});
await import('./main.ts');
