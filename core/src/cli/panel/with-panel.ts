/** Decides how a command works: through the panel that runs, or on the folder of one that does not. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Config } from '../../platform/config.ts';
import { type DataLock, lockDataDir } from '../../platform/data-dir.ts';
import { createKeyring, type Keyring } from '../../platform/keyring.ts';
import { readPanelAddress } from '../../platform/panel-address.ts';
import { Complaint, explain } from '../command/command-error.ts';
import type { Offline } from '../offline/offline.ts';
import { askReadiness, type Client, createClient, urlOf } from './client.ts';
import { databaseOf, enterFolder, whoAmI } from './data-folder.ts';

/** Somebody holds the data folder, but no panel answers. */
export class Unanswered extends Complaint {}

/** One command, both ways. */
export interface Ways<T> {
    /** Through the running panel. */
    online(client: Client): Promise<T>;
    /** On the folder, which is ours alone for as long. */
    offline(offline: Offline): Promise<T>;
}

const patienceMs = 10_000;
const askMs = 2_000;
const pauseMs = 150;

/** Names the command line, and who called it, in the audit log. */
export function userAgentOf(environment: NodeJS.ProcessEnv = process.env): string {
    const user = environment['SUDO_USER'] ?? whoAmI();
    return `portico-console (${user.replaceAll(/[^\w.@-]/g, '?').slice(0, 64)})`;
}

/**
 * Whether a panel runs is told by the lock that it holds, which the kernel drops with the process: never by a file that was left behind.
 * One that is just starting or stopping is waited for.
 *
 * @throws Complaint in words for whoever sits at the console
 */
export async function reach<T>(config: Config, ways: Ways<T>): Promise<T> {
    const { dataDir } = config;
    const userAgent = userAgentOf(); // before root becomes somebody else
    enterFolder(dataDir);
    try {
        const keyring = createKeyring(dataDir);
        const found = await locate(config, keyring, userAgent);
        if ('client' in found) {
            return await ways.online(found.client);
        }
        const { openOffline } = await import('../offline/offline.ts'); // the database, only where it is needed
        const offline = await openOffline({ config, keyring, lock: found.lock, userAgent });
        try {
            return await ways.offline(offline);
        } finally {
            await offline.close();
        }
    } catch (error) {
        throw explain(error, dataDir, databaseOf(dataDir));
    }
}

/** The running panel, or the lock of a folder whose panel does not run. @throws Unanswered */
export async function locate(
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
            return { client: createClient(address, keyring, userAgent) };
        }
        if (performance.now() > end) {
            const where = address === null ? '' : ` at ${urlOf(address)} (process ${address.pid})`;
            const how =
                answer === null
                    ? 'does not answer: it hangs, or is still starting or stopping'
                    : `says: ${answer.message}`;
            throw new Unanswered(
                `Another process holds ${dataDir}, and the panel${where} ${how}. Look at its log, try again, or end it and try again`
            );
        }
        await wait(pauseMs);
    }
}
