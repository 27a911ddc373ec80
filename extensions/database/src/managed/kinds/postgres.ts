/** PostgreSQL as a server that the panel runs. */
import { access, readdir } from 'node:fs/promises';

import { releaseFolder } from '../../dumps/clients.ts';
import type { Session } from '../../kinds/kind.ts';
import {
    type Engine,
    type Option,
    type OptionValue,
    type Plan,
    type Preset,
    type RunningOption,
    share
} from '../engine.ts';
import { ownUsername } from '../rows.ts';
import { postgresUpgrade } from './postgres-upgrade.ts';

const options: readonly Option[] = [
    { name: 'shared_buffers', type: 'bytes', min: 128 * 1024, restart: true },
    { name: 'effective_cache_size', type: 'bytes', min: 8 * 1024, restart: false },
    { name: 'work_mem', type: 'bytes', min: 64 * 1024, restart: false },
    { name: 'maintenance_work_mem', type: 'bytes', min: 1024 ** 2, restart: false },
    { name: 'max_connections', type: 'integer', min: 10, max: 100_000, restart: true },
    { name: 'max_wal_size', type: 'bytes', min: 32 * 1024 ** 2, restart: false },
    { name: 'synchronous_commit', type: 'choice', choices: ['on', 'local', 'off'], restart: false },
    { name: 'random_page_cost', type: 'integer', min: 1, max: 100, restart: false },
    { name: 'statement_timeout', type: 'milliseconds', min: 0, max: 2_147_483_647, restart: false },
    {
        name: 'idle_in_transaction_session_timeout',
        type: 'milliseconds',
        min: 0,
        max: 2_147_483_647,
        restart: false
    },
    { name: 'log_min_duration_statement', type: 'milliseconds', min: -1, max: 2_147_483_647, restart: false },
    { name: 'autovacuum', type: 'boolean', restart: false },
    { name: 'jit', type: 'boolean', restart: false }
];
const presets: Readonly<
    Record<Preset, { buffers: number; cache: number; work: number; connections: number }>
> = {
    tiny: { buffers: 0.15, cache: 0.4, work: 0.1, connections: 30 },
    web: { buffers: 0.25, cache: 0.6, work: 0.25, connections: 150 },
    oltp: { buffers: 0.3, cache: 0.7, work: 0.2, connections: 300 },
    olap: { buffers: 0.3, cache: 0.7, work: 0.4, connections: 30 }
};
const unitBytes: Readonly<Record<string, number>> = {
    B: 1,
    kB: 1024,
    '8kB': 8192,
    MB: 1024 ** 2,
    '16MB': 16 * 1024 ** 2
};

/** The engine on the releases of PostgreSQL that are installed. */
export const postgres: Engine = {
    kind: 'postgresql',
    account: 'postgres',
    install: 'apt-get install postgresql',
    options,
    releases,
    presetOptions,
    configFiles: ({ options: given, remote, logFolder, alone }) => ({
        'postgresql.conf': configuration({
            ...given,
            ...(remote === null
                ? {}
                : { ssl: true, ssl_cert_file: remote.certificateFile, ssl_key_file: remote.keyFile }),
            ...logOptions(logFolder)
        }),
        'pg_hba.conf': [
            ...(alone ? [`local all ${ownUsername} scram-sha-256`] : hostLines(remote, logFolder)),
            ''
        ].join('\n')
    }),
    async initialise({ release, dataFolder }, run, { username, password }) {
        await run(
            `${releaseFolder}/${release}/bin/initdb`,
            [
                `--pgdata=${dataFolder}`,
                `--username=${username}`,
                '--auth=scram-sha-256',
                '--pwfile=password',
                '--encoding=UTF8',
                '--locale=C.UTF-8',
                '--data-checksums'
            ],
            { privateFiles: { password: `${password}\n` } }
        );
    },
    service: (plan) => ({
        file: `${releaseFolder}/${plan.release}/bin/postgres`,
        args: argumentsOf(plan),
        // Ends sessions, and then the server in good order.
        stopSignal: 'SIGINT',
        reloadSignal: 'SIGHUP'
    }),
    socket: ({ runFolder }) => runFolder,
    upgrade: postgresUpgrade,
    running,
    apply: null
};

/** Options as the text of a file that PostgreSQL in a container reads. The container says who reaches it. */
export function containerConfiguration(given: Readonly<Record<string, OptionValue>>): string {
    return configuration({
        ...given,
        listen_addresses: '*',
        unix_socket_directories: '/var/run/postgresql'
    });
}

function configuration(given: Readonly<Record<string, OptionValue>>): string {
    return Object.entries({
        ...given,
        shared_preload_libraries: 'pg_stat_statements',
        timezone: 'UTC',
        log_timezone: 'UTC'
    })
        .map(([name, value]) => `${name} = '${textOf(name, value)}'\n`)
        .join('');
}

/** A server whose log was kept and that is not restarted yet goes on to archive: then into nothing, so that its log does not pile up. */
function logOptions(logFolder: string | null): Readonly<Record<string, OptionValue>> {
    return logFolder === null
        ? { archive_command: '/bin/true' }
        : {
              archive_mode: 'on',
              archive_library: 'basic_archive',
              'basic_archive.archive_directory': logFolder
          };
}

/** Who gets in, and how. */
function hostLines(remote: Plan['remote'], logFolder: string | null): readonly string[] {
    return [
        'local all all scram-sha-256',
        ...(logFolder === null ? [] : [`local replication ${ownUsername} scram-sha-256`]),
        'host all all 127.0.0.1/32 scram-sha-256',
        'host all all ::1/128 scram-sha-256',
        ...(remote?.allow ?? []).map((network) => `hostssl all all ${network} scram-sha-256`)
    ];
}

function argumentsOf({ dataFolder, configFolder, runFolder, port, remote, alone }: Plan): readonly string[] {
    const set = {
        config_file: `${configFolder}/postgresql.conf`,
        hba_file: `${configFolder}/pg_hba.conf`,
        unix_socket_directories: `"${runFolder.replaceAll('"', '""')}"`,
        listen_addresses: alone ? '' : remote === null ? '127.0.0.1' : '*',
        port: String(port)
    };
    return ['-D', dataFolder, ...Object.entries(set).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

async function releases(): Promise<readonly string[]> {
    const names = (await readdir(releaseFolder).catch(() => [])).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(
        names.map((name) =>
            access(`${releaseFolder}/${name}/bin/postgres`).then(
                () => [name],
                () => []
            )
        )
    );
    return found.flat().sort((one, other) => Number(other) - Number(one));
}

function presetOptions(preset: Preset, memoryBytes: number): Record<string, OptionValue> {
    const { buffers, cache, work, connections } = presets[preset];
    return {
        shared_buffers: share(memoryBytes, buffers, 16),
        effective_cache_size: share(memoryBytes, cache, 32),
        work_mem: share(memoryBytes, work / connections, 1, 1_024),
        maintenance_work_mem: share(memoryBytes, 1 / 16, 8, 2_048),
        max_connections: connections,
        max_wal_size: share(memoryBytes, 1, 256, 8_192)
    };
}

async function running(session: Session): Promise<ReadonlyMap<string, RunningOption>> {
    const rows = (await session.all(
        'select name, setting as value, unit, boot_val as usual from pg_settings where name = any($1)',
        [options.map(({ name }) => name)]
    )) as { name: string; value: string; unit: string | null; usual: string }[];
    const found = new Map(rows.map((row) => [row.name, row]));
    return new Map(
        options.map((option) => {
            const row = found.get(option.name);
            return [
                option.name,
                row === undefined
                    ? { value: null, default: null }
                    : {
                          value: valueOf(option, row.value, row.unit),
                          default: valueOf(option, row.usual, row.unit)
                      }
            ];
        })
    );
}

function valueOf({ type }: Option, text: string, unit: string | null): OptionValue {
    if (type === 'boolean') {
        return text === 'on';
    }
    return type === 'choice' ? text : Number(text) * (type === 'bytes' ? (unitBytes[unit ?? 'B'] ?? 1) : 1);
}

function textOf(name: string, value: OptionValue): string {
    const isBytes = options.some((option) => option.name === name && option.type === 'bytes');
    return typeof value === 'boolean'
        ? value
            ? 'on'
            : 'off'
        : isBytes
          ? `${Math.floor(Number(value) / 1024)}kB`
          : String(value).replace(/[\\']/g, '$&$&');
}
