/** Logs that the engine writes and cannot read. */
import { closeSync, constants, fchmodSync, fchownSync, fstatSync, openSync } from 'node:fs';

import { EngineUnavailable } from '../port.ts';

interface EngineLogs {
    readonly owner: { readonly switched: boolean; readonly uid: number; readonly gid: number };
    readonly logFile: string;
    readonly accessLogFile: string;
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;

/**
 * Makes the logs of an engine with a user of its own. They name its secret folders, and a link in a site's folder may lead to a file that the
 * engine has open. A log that the engine rolls keeps its mode.
 *
 * @throws EngineUnavailable when something else is in the way
 */
export const makeLogsWriteOnly = ({ owner, logFile, accessLogFile }: EngineLogs): void => {
    if (!owner.switched) {
        return;
    }

    for (const path of [logFile, accessLogFile]) {
        const file = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o200);
        try {
            const stats = fstatSync(file);
            if (!stats.isFile() || stats.nlink !== 1) {
                throw new EngineUnavailable(`${path} is not a log file of the engine: remove it`);
            }

            fchownSync(file, owner.uid, owner.gid);
            fchmodSync(file, 0o200);
        } finally {
            closeSync(file);
        }
    }
};
