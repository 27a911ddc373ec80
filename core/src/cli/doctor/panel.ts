/** Checks of the running panel: which process holds the data folder, and whether it answers. */
import { createServer } from 'node:net';

import { readPanelAddress } from '../../platform/address/panel.ts';
import type { Config } from '../../platform/config.ts';
import { lockDataDir } from '../../platform/data-dir/data-dir.ts';
import { createKeyring } from '../../platform/keys/keyring.ts';
import { askReadiness, Client, panelUrl } from '../panel/client.ts';
import { type Check, fault, ok, warn } from './check.ts';

const patienceMs = 5_000;
const hung = 'Look at its log. If it does not answer again, end that process: the sites are still served';

/** Checks the panel, or the port that it would listen on. */
export async function checkPanel(config: Config, userAgent: string): Promise<Check[]> {
    const lock = lockDataDir(config.dataDir);
    if (lock !== null) {
        lock.release();
        return [
            ok('lock', 'no process holds the data folder'),
            warn('panel', 'no panel runs on this data folder', 'Start it: portico start'),
            await checkPort(config)
        ];
    }
    const address = readPanelAddress(config.dataDir);
    if (address === null) {
        return [
            ok('lock', 'another process holds the data folder'),
            fault(
                'panel',
                'the panel has not written its address: it is starting or stopping, or it hangs',
                hung
            )
        ];
    }
    const held = ok('lock', `the panel (process ${address.pid}) holds the data folder`);
    const answer = await askReadiness(address, patienceMs);
    if (answer === null) {
        return [
            held,
            fault(
                'panel',
                `${panelUrl(address)} does not answer as a panel within ${patienceMs / 1000} s`,
                hung
            )
        ];
    }
    if (!answer.ready) {
        return [
            held,
            warn('panel', `${panelUrl(address)} says: ${answer.message}`, 'Wait until it is ready')
        ];
    }
    try {
        await new Client(address, createKeyring(config.dataDir), userAgent).call(
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
                `${panelUrl(address)} is ready, but refuses the command line: ${(error as Error).message}`,
                'The panel may run with other keys than those in this folder: restart it'
            )
        ];
    }
    return [held, ok('panel', `${panelUrl(address)} is ready and takes the command line's token`)];
}

/** Checks whether a panel could listen on its port. */
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
              `the panel cannot listen on ${host}:${port} (${code})`,
              code === 'EADDRINUSE'
                  ? 'End the program that listens there, or set PORTICO_PORT'
                  : 'Set PORTICO_HOST and PORTICO_PORT to an address of this machine'
          );
}
