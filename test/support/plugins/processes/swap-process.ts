/** A panel in a process of its own, with an engine in memory. It kills itself at the moment at which the swap of a plugin reaches a phase. */
import { createPanel } from '../../../../core/src/panel.ts';
import { readConfig } from '../../../../core/src/platform/config.ts';
import { createLog } from '../../../../core/src/platform/log/log.ts';
import { createFaultyEngine } from '../../engine/faulty.ts';

const [phase = ''] = process.argv.slice(2);
const panel = await createPanel({
    config: readConfig(process.env, process.cwd()),
    log: createLog({ level: 'warn' }),
    show: () => undefined,
    driver: createFaultyEngine(),
    drainMs: 2_000,
    pluginTiming: { goodMs: 1 },
    reached(_plugin, reached) {
        if (reached === phase) {
            process.kill(process.pid, 'SIGKILL');
        }
    }
});
const { port } = await panel.start();
await panel.settled();
process.stdout.write(`port ${port}\n`);
process.on('SIGTERM', () => void panel.stop({ engine: true }).then(() => process.exit(0)));
