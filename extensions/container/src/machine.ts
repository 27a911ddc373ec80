/** What the plugin asks of the machine beside the engine. */
import { errors } from '@portico/sdk';

import type { Ctx } from './settings.ts';

/** The machine; tests have their own. */
export interface Machine {
    /** The file of the daemon's settings. */
    readonly daemonFile: string;
    /** Has the daemon read its file, or starts it anew. @throws TOOL_MISSING 50302 without systemd */
    applyDaemon(ctx: Ctx, how: 'reload' | 'restart'): Promise<void>;
}

/** Docker as Debian and Docker's own packages install it. */
export const realMachine: Machine = {
    daemonFile: '/etc/docker/daemon.json',
    async applyDaemon(ctx, how) {
        // A unit that failed too often is started again all the same.
        await ctx.exec('systemctl', ['reset-failed', 'docker.service'], { timeoutSeconds: 20 });
        const { code, stderr } = await ctx.exec('systemctl', [how, 'docker.service'], { timeoutSeconds: 60 });
        if (code !== 0) {
            ctx.log.warn('systemctl failed', { how, code, stderr: stderr.slice(0, 500) });
            if (/not been booted with systemd|connect to bus/.test(stderr)) {
                throw errors.toolMissing('systemd', 'apt-get install systemd-sysv');
            }
        }
    }
};
