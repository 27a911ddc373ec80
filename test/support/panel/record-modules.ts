/** Loaded before a panel: writes the path of each module that the panel loads as a line of the file in `MODULES_FILE`. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const file = process.env['MODULES_FILE'] ?? '';

registerHooks({
    load(url, context, nextLoad) {
        if (url.startsWith('file:')) {
            appendFileSync(file, `${fileURLToPath(url)}\n`);
        }
        return nextLoad(url, context);
    }
});
