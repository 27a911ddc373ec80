/** Checks of the running panel: who holds the data folder, and whether it answers us. */
import { createServer } from 'node:net';

import type { Config } from '../../platform/config.ts';
import { lockDataDir } from '../../platform/data-dir.ts';
import { createKeyring } from '../../platform/keyring.ts';
import { readPanelAddress } from '../../platform/panel-address.ts';
import { askReadiness, createClient, urlOf } from '../panel/client.ts';
import { type Check, fault, ok, warn } from './check.ts';

const patienceMs = 5_000;
const hung = 'Look at its log; if it does not come back, end that process: sites keep being served';

export async function checkPanel(config: Config, userAgent: string): Promise<Check[]> {
    const lock = lockDataDir(config.dataDir);
    if (lock !== null) {
        lock.release();
        return [
            ok('lock', 'nobody holds the data folder'),
            warn('panel', 'no panel runs on this data folder', 'Start it: portico start'),
            await checkPort(config)
        ];
    }
    const address = readPanelAddress(config.dataDir);
    if (address === null) {
        return [
            ok('lock', 'another process holds the data folder'),
            fault('panel', 'it has not said where it listens: it is starting, stopping, or hangs', hung)
        ];
    }
    const held = ok('lock', `held, as it should be by the panel (process ${address.pid})`);
    const answer = await askReadiness(address, patienceMs);
    if (answer === null) {
        return [
            held,
            fault('panel', `${urlOf(address)} does not answer as a panel within ${patienceMs / 1000} s`, hung)
        ];
    }
    if (!answer.ready) {
        return [held, warn('panel', `${urlOf(address)} says: ${answer.message}`, 'Wait until it is ready')];
    }
    try {
        await createClient(address, createKeyring(config.dataDir), userAgent).call(
            'GET',
            '/api/audit?limit=1',
            undefined,
            patienceMs
        );
    } catch (error) {
        return [
            held,
            fault(
                'panel',
                `${urlOf(address)} is ready, but refuses the command line: ${(error as Error).message}`,
                'The panel may run with other keys than those of this folder: start it again'
            )
        ];
    }
    return [held, ok('panel', `${urlOf(address)} is ready and takes the command line's token`)];
}

/** Whether the panel could listen. */
async function checkPort({ host, port }: Config): Promise<Check> {
    const code = await new Promise<string | null>((resolve) => {
        const server = createServer();
        server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
    });
    return code === null
        ? ok('panel-port', `${host}:${port} is free`)
        : fault(
              'panel-port',
              `${host}:${port} cannot be listened on (${code})`,
              code === 'EADDRINUSE'
                  ? 'End what listens there, or set PORTICO_PORT'
                  : 'Set PORTICO_HOST and PORTICO_PORT to an address of this machine'
          );
}
