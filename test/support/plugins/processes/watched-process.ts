/** A process with a watchdog and the code of one plugin, for tests of what ends a process. Arguments: the folder of incidents, the module of the plugin, options as JSON. */
import { dirname } from 'node:path';

import { Watchdog } from '../../../../core/src/plugins/manager/watchdog/watchdog.ts';
import { ErrorOwner } from '../../../../core/src/plugins/runtime/isolation/error-owner.ts';

/** What the test asks for. */
export interface Options {
    /** Go on until an incident was noted. */
    readonly waits?: boolean;
    /** Default: 500. */
    readonly blockedMs?: number;
}

const [, , folder = '', module = '', options = '{}'] = process.argv;
const { waits = false, blockedMs = 500 } = JSON.parse(options) as Options;
const noted = Promise.withResolvers<void>();
const errorOwner = new ErrorOwner((plugin, place) => watchdog.watch({ plugin, folder: place }));
const watchdog = new Watchdog({
    folder,
    errorOwner,
    noted(incident) {
        process.stdout.write(`noted ${incident.code}\n`);
        noted.resolve();
    },
    failed: (error) => process.stdout.write(`failed ${error.message}\n`),
    timing: { everyMs: 50, blockedMs, endedMs: blockedMs + 1_000 }
});
const { harm } = (await import(module)) as { readonly harm: () => unknown };
const { enter } = errorOwner.confine('harmful', dirname(module));
enter(() => setTimeout(harm, 50));
const alive = setInterval(() => undefined, 1_000); // the watchdog keeps no process running
await (waits ? noted.promise : new Promise((done) => setTimeout(done, 200)));
await watchdog.close();
clearInterval(alive);
