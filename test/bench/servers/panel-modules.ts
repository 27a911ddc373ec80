/** The modules of the panel, loaded and not run: the part of its start that is nothing but code. */
import { enableCompileCache, flushCompileCache } from 'node:module';

import { asChild } from './child.ts';

enableCompileCache();

asChild(async () => {
    await import('../../../core/src/panel.ts');
    setImmediate(() => flushCompileCache());
    return 'loaded';
});
