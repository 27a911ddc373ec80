/** The panel as a process: start, signals, end. The only place that exits while a panel runs. */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';

import type { Panel } from './panel.ts';
import type { Config } from './platform/config.ts';
import { createLog } from './platform/log/log.ts';
import { closeInherited } from './platform/process/descriptors.ts';

/** Runs the panel until a signal ends it; `SIGTERM` and `SIGINT` drain first. */
export async function run(config: Config, { stopEngine }: { readonly stopEngine: boolean }): Promise<void> {
    closeInherited();
    process.umask(0o077);
    // Not in the folder for temporary files, where other users of the machine could put code of theirs.
    enableCompileCache(join(config.dataDir, 'cache'));
    const log = createLog({ level: config.logLevel });
    // A closed standard error must not end the panel.
    process.stderr.on('error', () => undefined);
    let panel: Panel | null = null;
    process.on('uncaughtException', (error) => {
        if (panel?.handleUncaught(error) === true) {
            return;
        }
        log.error('The panel stops: an uncaught error', { error });
        process.exit(1);
    });
    const { createPanel } = await import('./panel.ts');
    const started = await createPanel({
        config,
        log,
        watch: !process.execArgv.some((each) => each.startsWith('--inspect')), // a breakpoint blocks as well
        show: (text) => process.stderr.write(`\n${text}\n\n`),
        checkReturns: process.env['NODE_ENV'] === 'development'
    });
    panel = started;
    let stopping: Promise<void> | null = null;
    const stop = (signal: string): void => {
        // npm and a terminal both pass the signal on, so it may come twice.
        stopping ??= (async () => {
            log.info('The panel stops', { signal });
            await started.stop({ engine: stopEngine });
            process.exit(0);
        })();
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    const { address, port } = await started.start();
    log.info(`The panel listens on http://${address.includes(':') ? `[${address}]` : address}:${port}`, {
        address,
        port,
        dataDir: config.dataDir
    });
    flushCompileCache();
}
