/** Takes the data of MariaDB to a newer release: a copy of all files, which that release reads and `mariadb-upgrade` then puts in order. */
import { errors } from '@portico/sdk';

import { clientFile, hasProgram } from '../../dumps/clients.ts';
import { copyFolder } from '../../point-in-time/archiver.ts';
import type { EngineUpgrade } from '../engine.ts';
import { isNewer } from '../releases.ts';

const tool = 'mariadb-upgrade';
const optionsFile = 'client.cnf';

/** The way of MariaDB to a newer release. A machine has one release at a time, so the old data are served by the newer one already, or the server has not been started since that came. */
export const mariadbUpgrade: EngineUpgrade = {
    isNewer,
    async check() {
        if (!(await hasProgram(tool))) {
            throw errors.toolMissing(tool, 'apt-get install mariadb-client');
        }
    },
    async fill({ from, to, login, run, progress, stop, start }) {
        progress(0.1, 'Copying its data');
        await stop();
        await copyFolder(run, from.plan.dataFolder, to.plan.dataFolder);
        progress(0.6, 'Starting the new release for the panel alone');
        await start('new');
        progress(0.7, 'Bringing its own tables to the new release');
        const address = {
            host: null,
            port: to.plan.port,
            socket: to.socket,
            tls: 'disable',
            ca: null
        } as const;
        await run(tool, [`--defaults-file=${optionsFile}`, `--tmpdir=${to.plan.dataFolder}`, '--force'], {
            privateFiles: { [optionsFile]: clientFile({ ...address, ...login }, login.password, null) },
            isLong: true
        });
    }
};
