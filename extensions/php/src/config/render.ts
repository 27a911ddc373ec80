/**
 * The configuration of a site's PHP-FPM, as data: no text of a user gets into it but as one quoted value. What walls the site off stands in
 * the pool as `php_admin_value`, which no script and no `.user.ini` can change; what a site may set stands in an INI file of its own, as
 * in a `php.ini`.
 */
import { type DirectiveValues, effective } from './directives.ts';
import { lines, quoted } from './ini.ts';
import type { Pool } from './pool.ts';

/** What a configuration is made of. */
export interface ConfigInput {
    /** Absolute: the site's folder. */
    readonly folder: string;
    /** Absolute paths beside it that scripts may open. */
    readonly extraPaths: readonly string[];
    /** Absolute: the folder of the configuration's files. */
    readonly configFolder: string;
    readonly socket: string;
    readonly statusSocket: string;
    readonly release: string;
    readonly slot: number;
    readonly revision: number;
    readonly env: Readonly<Record<string, string>>;
    readonly values: DirectiveValues;
    readonly pool: Pool;
}

/** A configuration as the texts of its files. */
export interface Config {
    /** For PHP-FPM. */
    readonly fpm: string;
    /** For PHP. */
    readonly ini: string;
}

/** Functions that start programs, make links or load code: what a broken-in script would use to get out. */
const disabledFunctions = [
    'exec',
    'shell_exec',
    'system',
    'passthru',
    'proc_open',
    'popen',
    'pcntl_exec',
    'pcntl_fork',
    'symlink',
    'link',
    'dl'
];
const header = '; Made by Portico from the data of the site, and written anew at each change.\n';

/** The path that the pool answers its numbers at; it says which configuration is in effect. The engine never passes it on. */
export function statusPath(revision: number): string {
    return `/portico-status-${revision}`;
}

/** The name of a log below `logs`. Both slots of a site write to the same ones. */
export function logName(kind: 'error' | 'slow' | 'access'): string {
    return `${kind}.log`;
}

/** The name of a slot's pool: lines of logs tell by it which slot wrote them. */
export function poolName(slot: number): string {
    return slot === 0 ? 'site' : 'site-b';
}

/** Makes the text of a site's files: of PHP-FPM, and of `php.ini`. */
export function render(input: ConfigInput): Config {
    return { fpm: header + globalSection(input) + poolSection(input), ini: header + iniFile(input) };
}

function globalSection({ folder, pool }: ConfigInput): string {
    return `[global]\n${lines({
        error_log: quoted(`${folder}/logs/${logName('error')}`),
        log_level: 'notice',
        daemonize: 'no',
        // A stop waits so long for requests under way: no request may last longer.
        process_control_timeout: `${pool.requestSeconds}s`
    })}`;
}

function poolSection(input: ConfigInput): string {
    const { folder, socket, statusSocket, release, slot, revision, env, pool } = input;
    const isDynamic = pool.mode === 'dynamic';
    return `\n[${poolName(slot)}]\n${lines({
        listen: quoted(socket),
        'listen.mode': '0660',
        'listen.backlog': 511,
        pm: pool.mode,
        'pm.max_children': pool.maxChildren,
        'pm.start_servers': isDynamic ? pool.startServers : undefined,
        'pm.min_spare_servers': isDynamic ? pool.minSpare : undefined,
        'pm.max_spare_servers': isDynamic ? pool.maxSpare : undefined,
        'pm.process_idle_timeout': pool.mode === 'ondemand' ? `${pool.idleSeconds}s` : undefined,
        'pm.max_requests': pool.maxRequests,
        'pm.status_path': statusPath(revision),
        'pm.status_listen': hasStatusListen(release) ? quoted(statusSocket) : undefined,
        request_terminate_timeout: `${pool.requestSeconds}s`,
        request_slowlog_timeout: pool.slowSeconds === null ? undefined : `${pool.slowSeconds}s`,
        slowlog: pool.slowSeconds === null ? undefined : quoted(`${folder}/logs/${logName('slow')}`),
        'access.log': quoted(`${folder}/logs/${logName('access')}`),
        'access.format': '"%t %n %s %{milliseconds}dms %{kilobytes}MkB %m %r"',
        catch_workers_output: 'yes',
        'security.limit_extensions': '.php',
        clear_env: 'yes'
    })}${walls(input)}${environment(env)}`;
}

/** From this release on, a socket of its own answers the status, also when all workers are busy. */
export function hasStatusListen(release: string): boolean {
    return Number(release.split('.')[0]) >= 8;
}

function walls({ folder, extraPaths, configFolder }: ConfigInput): string {
    const values: Readonly<Record<string, string>> = {
        open_basedir: [
            `${folder}/`,
            `${configFolder}/panel.php`,
            ...extraPaths.map((path) => `${path}/`)
        ].join(':'),
        disable_functions: disabledFunctions.join(','),
        sys_temp_dir: `${folder}/private/tmp`,
        upload_tmp_dir: `${folder}/private/uploads`,
        'session.save_handler': 'files',
        'session.save_path': `${folder}/private/sessions`,
        error_log: `${folder}/logs/${logName('error')}`,
        'mail.log': `${folder}/logs/mail.log`,
        'cgi.fix_pathinfo': '0',
        enable_dl: '0'
    };
    return Object.entries(values)
        .map(([name, value]) => `php_admin_value[${name}] = ${quoted(value)}\n`)
        .join('');
}

function environment(env: Readonly<Record<string, string>>): string {
    return Object.entries(env)
        .map(([name, value]) => `env[${name}] = ${quoted(value)}\n`)
        .join('');
}

function iniFile({ values, folder }: ConfigInput): string {
    const all = Object.fromEntries(
        Object.entries(effective(values)).map(([name, value]) => [name, quoted(value)])
    );
    return lines({
        ...all,
        'cgi.fix_pathinfo': quoted('0'),
        expose_php: quoted('Off'),
        // Without `.user.ini` files, no script can be put before every other one.
        'user_ini.filename': quoted(''),
        auto_prepend_file: quoted(''),
        auto_append_file: quoted(''),
        'soap.wsdl_cache_dir': quoted(`${folder}/private/tmp`),
        'session.save_path': quoted(`${folder}/private/sessions`),
        'opcache.validate_permission': quoted('On'),
        'opcache.use_cwd': quoted('On')
    });
}
