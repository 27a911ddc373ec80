/** MariaDB as a server that the panel runs. */
import { access } from 'node:fs/promises';

import type { Session } from '../../kinds/kind.ts';
import type { Ctx } from '../../settings.ts';
import {
    type Engine,
    type Option,
    type OptionValue,
    type Preset,
    type RunningOption,
    share
} from '../engine.ts';
import { mariadbUpgrade } from './mariadb-upgrade.ts';

const options: readonly Option[] = [
    { name: 'innodb_buffer_pool_size', type: 'bytes', min: 5 * 1024 ** 2, restart: false },
    { name: 'innodb_log_file_size', type: 'bytes', min: 4 * 1024 ** 2, restart: true },
    { name: 'innodb_flush_log_at_trx_commit', type: 'integer', min: 0, max: 3, restart: false },
    { name: 'max_connections', type: 'integer', min: 10, max: 100_000, restart: false },
    { name: 'max_allowed_packet', type: 'bytes', min: 1_024, max: 1024 ** 3, restart: false },
    { name: 'tmp_table_size', type: 'bytes', min: 0, restart: false },
    { name: 'max_heap_table_size', type: 'bytes', min: 16_384, restart: false },
    { name: 'table_open_cache', type: 'integer', min: 10, max: 1_048_576, restart: false },
    { name: 'wait_timeout', type: 'seconds', min: 1, max: 31_536_000, restart: false },
    { name: 'slow_query_log', type: 'boolean', restart: false },
    { name: 'long_query_time', type: 'seconds', min: 0, max: 31_536_000, restart: false },
    { name: 'performance_schema', type: 'boolean', restart: true },
    { name: 'event_scheduler', type: 'boolean', restart: false }
];
const presets: Readonly<
    Record<Preset, { pool: number; log: number; connections: number; temporary: number; cache: number }>
> = {
    tiny: { pool: 0.25, log: 0.1, connections: 30, temporary: 0.02, cache: 200 },
    web: { pool: 0.4, log: 0.1, connections: 150, temporary: 0.03, cache: 2_000 },
    oltp: { pool: 0.6, log: 0.2, connections: 400, temporary: 0.02, cache: 4_000 },
    olap: { pool: 0.5, log: 0.15, connections: 40, temporary: 0.15, cache: 1_000 }
};
const program = 'mariadbd';
/** Files of the log of changes: this name, and a number. */
export const binaryLog = 'binlog';
const places = ['/usr/sbin/mariadbd', '/usr/local/sbin/mariadbd', '/usr/bin/mariadbd'];

/** The engine on this machine's `mariadbd`. */
export function createMariadb(ctx: Ctx): Engine {
    return {
        kind: 'mysql',
        account: 'mysql',
        install: 'apt-get install mariadb-server',
        options,
        releases: () => releases(ctx),
        presetOptions,
        configFiles: ({ options: given, remote }) => ({
            'server.cnf': mariadbConfiguration({
                ...given,
                ...(remote === null
                    ? {}
                    : {
                          ssl_cert: remote.certificateFile,
                          ssl_key: remote.keyFile,
                          require_secure_transport: true
                      })
            })
        }),
        async initialise({ dataFolder }, run, { username, password }) {
            await run('mariadb-install-db', [
                '--no-defaults',
                `--datadir=${dataFolder}`,
                '--auth-root-authentication-method=normal',
                '--skip-test-db',
                '--skip-name-resolve'
            ]);
            // No server listens yet: at its first start there is one account, which has a password.
            await run(
                program,
                ['--no-defaults', '--bootstrap', `--datadir=${dataFolder}`, '--skip-log-bin'],
                {
                    stdin: [
                        'flush privileges;',
                        `create user ${username}@localhost identified by '${password}';`,
                        `grant all privileges on *.* to ${username}@localhost with grant option;`,
                        `delete from mysql.global_priv where user not in ('mariadb.sys', '${username}');`,
                        'delete from mysql.proxies_priv;',
                        ''
                    ].join('\n')
                }
            );
        },
        service: ({ dataFolder, runFolder, configFolder, port, remote, logFolder, alone }) => ({
            file: program,
            args: [
                `--defaults-file=${configFolder}/server.cnf`,
                `--datadir=${dataFolder}`,
                `--socket=${runFolder}/mysqld.sock`,
                `--pid-file=${runFolder}/mysqld.pid`,
                `--port=${port}`,
                `--bind-address=${remote === null ? '127.0.0.1' : '*'}`,
                '--log-output=TABLE',
                ...(alone ? ['--skip-networking', '--event-scheduler=DISABLED'] : []),
                ...(logFolder === null
                    ? ['--skip-log-bin']
                    : [
                          `--log-bin=${logFolder}/${binaryLog}`,
                          '--binlog-format=ROW',
                          // With rows in the log, triggers and functions of owners and of restores cannot harm it.
                          '--log-bin-trust-function-creators',
                          '--sync-binlog=1',
                          '--expire-logs-days=0'
                      ])
            ],
            stopSignal: 'SIGTERM'
        }),
        socket: ({ runFolder }) => `${runFolder}/mysqld.sock`,
        upgrade: mariadbUpgrade,
        running,
        async apply(session, changed) {
            for (const [name, value] of Object.entries(changed)) {
                await session.run(`set global ${name} = ${value === null ? 'default' : literalOf(value)}`);
            }
        }
    };
}

/** Options as the text of a file that MariaDB reads. */
export function mariadbConfiguration(given: Readonly<Record<string, OptionValue>>): string {
    const lines = Object.entries(given).map(([name, value]) => `${name} = ${textOf(value)}\n`);
    return `[mariadbd]\n${lines.join('')}`;
}

async function releases(ctx: Ctx): Promise<readonly string[]> {
    const found = await Promise.all(
        places.map((path) =>
            access(path).then(
                () => true,
                () => false
            )
        )
    );
    if (!found.includes(true)) {
        return [];
    }
    const { stdout } = await ctx.exec(program, ['--no-defaults', '--version'], { cwd: '/' });
    const release = /Ver (\d+\.\d+)/.exec(stdout)?.[1];
    return release === undefined ? [] : [release];
}

function presetOptions(preset: Preset, memoryBytes: number): Record<string, OptionValue> {
    const { pool, log, connections, temporary, cache } = presets[preset];
    const temporaryBytes = share(memoryBytes, temporary, 4, 512);
    return {
        innodb_buffer_pool_size: share(memoryBytes, pool, 16),
        innodb_log_file_size: share(memoryBytes, log, 16, 4_096),
        max_connections: connections,
        tmp_table_size: temporaryBytes,
        max_heap_table_size: temporaryBytes,
        table_open_cache: cache,
        slow_query_log: true,
        long_query_time: 1
    };
}

async function running(session: Session): Promise<ReadonlyMap<string, RunningOption>> {
    const rows = (await session.all(
        `select lower(variable_name) as name, global_value as value, default_value as usual from information_schema.system_variables
         where lower(variable_name) in (${options.map(({ name }) => `'${name}'`).join(', ')})`
    )) as { name: string; value: string | null; usual: string | null }[];
    const found = new Map(rows.map((row) => [row.name, row]));
    return new Map(
        options.map((option) => {
            const row = found.get(option.name);
            return [
                option.name,
                { value: valueOf(option, row?.value), default: valueOf(option, row?.usual) }
            ];
        })
    );
}

function valueOf({ type }: Option, text: string | null | undefined): OptionValue | null {
    if (text === null || text === undefined || text === '') {
        return null;
    }
    return type === 'boolean' ? /^(on|1|true|yes)$/i.test(text) : type === 'choice' ? text : Number(text);
}

function textOf(value: OptionValue): string {
    return typeof value === 'boolean' ? (value ? 'ON' : 'OFF') : String(value);
}

function literalOf(value: OptionValue): string {
    return typeof value === 'string' ? `'${value}'` : textOf(value);
}
