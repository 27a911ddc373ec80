/** Decides how a command works: through the running panel, or on the data folder when no panel runs. */
import { setTimeout as wait } from 'node:timers/promises';

import { readPanelAddress } from '../../platform/address/panel.ts';
import type { Config } from '../../platform/config.ts';
import { type DataLock, lockDataDir } from '../../platform/data-dir/data-dir.ts';
import { createKeyring, type Keyring } from '../../platform/keys/keyring.ts';
import { CommandError, explainFileError } from '../command/command-error.ts';
import type { Offline } from '../offline/offline.ts';
import { askReadiness, Client, panelUrl } from './client.ts';
import { currentUser, databasePath, enterFolder } from './data-folder.ts';

/** Another process holds the data folder, but no panel answers. */
export class PanelUnresponsive extends CommandError {}

/** The work of a command, for both cases. */
export interface PanelWork<T> {
    /** With a running panel: through its API. */
    online(client: Client): Promise<T>;
    /** Without a panel: on the data folder, which no other process can use meanwhile. */
    offline(offline: Offline): Promise<T>;
}

const patienceMs = 10_000;
const askMs = 2_000;
const pauseMs = 150;

/** The user agent that the audit log shows for the command line, with the name of the person who called it. */
export function describeUserAgent(environment: NodeJS.ProcessEnv = process.env): string {
    const user = environment['SUDO_USER'] ?? currentUser();
    return `portico-console (${user.replaceAll(/[^\w.@-]/g, '?').slice(0, 64)})`;
}

/**
 * Runs the work of a command. Whether a panel runs is decided by the lock of the data folder, which the kernel releases with the process, so a file that
 * was left behind cannot mislead. A panel that is starting or stopping is waited for.
 *
 * @throws CommandError
 */
export async function withPanel<T>(config: Config, ways: PanelWork<T>): Promise<T> {
    const { dataDir } = config;
    const userAgent = describeUserAgent(); // before root becomes another user
    enterFolder(dataDir);
    try {
        const keyring = createKeyring(dataDir);
        const found = await locatePanel(config, keyring, userAgent);
        if ('client' in found) {
            return await ways.online(found.client);
        }
        const { openOffline } = await import('../offline/offline.ts'); // loads the database, so only when it is needed
        const offline = await openOffline({ config, keyring, lock: found.lock, userAgent });
        try {
            return await ways.offline(offline);
        } finally {
            await offline.close();
        }
    } catch (error) {
        throw explainFileError(error, dataDir, databasePath(dataDir));
    }
}

/** Runs work that only a running panel can do. @throws CommandError when none runs */
export async function withRunningPanel<T>(config: Config, work: (client: Client) => Promise<T>): Promise<T> {
    const { dataDir } = config;
    const userAgent = describeUserAgent(); // before root becomes another user
    enterFolder(dataDir);
    try {
        const found = await locatePanel(config, createKeyring(dataDir), userAgent);
        if ('client' in found) {
            return await work(found.client);
        }
        found.lock.release();
        throw new CommandError(`No panel runs on ${dataDir}. Start it first: portico start`);
    } catch (error) {
        throw explainFileError(error, dataDir, databasePath(dataDir));
    }
}

/** Finds the running panel, or takes the lock of the data folder when no panel runs. @throws PanelUnresponsive */
export async function locatePanel(
    { dataDir }: Config,
    keyring: Keyring,
    userAgent: string
): Promise<{ readonly client: Client } | { readonly lock: DataLock }> {
    const end = performance.now() + patienceMs;
    for (;;) {
        const lock = lockDataDir(dataDir);
        if (lock !== null) {
            return { lock };
        }
        const address = readPanelAddress(dataDir);
        const answer = address === null ? null : await askReadiness(address, askMs);
        if (address !== null && answer?.ready === true) {
            return { client: new Client(address, keyring, userAgent) };
        }
        if (performance.now() > end) {
            const where = address === null ? '' : ` at ${panelUrl(address)} (process ${address.pid})`;
            const how =
                answer === null
                    ? 'does not answer: it hangs, or is still starting or stopping'
                    : `says: ${answer.message}`;
            throw new PanelUnresponsive(
                `Another process holds ${dataDir}, and the panel${where} ${how}. Look at its log, then try again, or end that process`
            );
        }
        await wait(pauseMs);
    }
}
