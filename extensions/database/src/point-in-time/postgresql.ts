/** The past of PostgreSQL: `pg_basebackup` copies, and the server's own module `basic_archive` keeps the log. */
import { readdir } from 'node:fs/promises';

import { errors, isFailure } from '@portico/sdk';

import { conninfo, passwordFile, releaseFolder } from '../dumps/clients.ts';
import type { RunTool } from '../managed/engine.ts';
import { verifierOf } from '../postgresql/accounts/password.ts';
import { type Archiver, copyFolder, type Filled, type Past } from './archiver.ts';

/** The first release with `archive_library`. */
const firstRelease = 15;
/** The name of a segment, which begins the name of the note on a base copy that began in it. */
const segment = /^[0-9A-F]{8}([0-9A-F]{8})([0-9A-F]{8})(\.[0-9A-F]{8}\.backup)?$/;
/** Segments of 16 MiB in one number of the middle part of a name. Source: PostgreSQL, "WAL Internals". */
const segmentsPerLog = 256;
/** Files that one call of `cp` is given. */
const filesPerCall = 500;
/** What the server says when nothing was written after the time that it is to reach. */
const tooEarlyEnd = 'recovery ended before configured recovery target was reached';

/** Keeps the past of servers of PostgreSQL. */
export const postgresArchiver: Archiver = {
    async check(release) {
        if (Number(release) < firstRelease) {
            throw errors.invalid([
                {
                    path: 'pointInTime',
                    message: `PostgreSQL ${release} cannot do it; releases from ${firstRelease} on can`
                }
            ]);
        }
    },
    async logState(session) {
        const [row] = await session.all(
            `select current_setting('archive_mode') = 'on' and current_setting('archive_library') = 'basic_archive' as kept,
             last_failed_time > coalesce(last_archived_time, '-infinity') as failing, last_failed_wal as file from pg_stat_archiver`
        );
        return {
            isKept: row?.['kept'] === true,
            problem:
                row?.['failing'] === true
                    ? `${String(row['file'])} could not be written to the archive`
                    : null
        };
    },
    async copy(folder, server, password, run) {
        const release = (server.serverVersion ?? '').split('.')[0] ?? '';
        await run(
            `${releaseFolder}/${release}/bin/pg_basebackup`,
            [
                `--pgdata=${folder}`,
                '--format=plain',
                '--wal-method=stream',
                '--checkpoint=fast',
                '--no-password',
                `--dbname=${conninfo(server, { address: null })}`
            ],
            {
                env: { PGPASSFILE: 'pgpass' },
                privateFiles: { pgpass: passwordFile(password) },
                isLong: true
            }
        );
    },
    label: {
        file: 'backup_label',
        firstLog: (text) => /^START WAL LOCATION: .*\(file ([0-9A-F]{24})\)/m.exec(text)?.[1] ?? ''
    },
    numberOf(file) {
        const [, log = '', part = ''] = segment.exec(file) ?? [];
        return log === '' ? null : parseInt(log, 16) * segmentsPerLog + parseInt(part, 16);
    },
    purge: null,
    async restore(past, filled) {
        const { plan, run } = filled;
        await copyFolder(run, past.base, plan.dataFolder);
        await copyLog(past, `${plan.dataFolder}/pg_wal`, run);
        // An empty file of this name tells the server to recover.
        await run('cp', ['--', '/dev/null', `${plan.dataFolder}/recovery.signal`]);
        const time = past.at.toISOString().replace('T', ' ').replace('Z', '+00');
        try {
            await recover(filled, [`recovery_target_time=${time}`]);
        } catch (error) {
            if (!isFailure(error) || !error.message.includes(tooEarlyEnd)) {
                throw error;
            }
            // Nothing was committed after that time, so the end of the log is the state of that time.
            await recover(filled, []);
        }
    }
};

/**
 * First what the server has not archived yet, then the archive: a segment that the server reuses while it is copied is in the archive by then, and that
 * copy counts.
 */
async function copyLog({ logs, sourceFolder }: Past, target: string, run: RunTool): Promise<void> {
    const recent = `${sourceFolder}/pg_wal`;
    const names = (await readdir(recent).catch(() => [])).filter((name) => segment.test(name)).sort();
    for (const files of [names.map((name) => `${recent}/${name}`), logs]) {
        for (let start = 0; start < files.length; start += filesPerCall) {
            const part = files.slice(start, start + filesPerCall);
            await run('cp', [`--target-directory=${target}`, '--', ...part], { isLong: true });
        }
    }
}

/** One server process without any connection recovers, and gives the panel's account its password. */
async function recover({ plan, login, run }: Filled, more: readonly string[]): Promise<void> {
    const set = [
        'archive_mode=off',
        'restore_command=false',
        'recovery_target_action=promote',
        'log_min_messages=fatal',
        ...more
    ];
    const { dataFolder, release } = plan;
    await run(
        `${releaseFolder}/${release}/bin/postgres`,
        ['--single', '-D', dataFolder, ...set.flatMap((each) => ['-c', each]), 'postgres'],
        {
            stdin: `alter role ${login.username} password '${await verifierOf(login.password)}'\n`,
            isLong: true
        }
    );
}
