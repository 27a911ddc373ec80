/** The unit of a service: how systemd is told to run it. Pure. */
import { createHash } from 'node:crypto';

import { marker } from '../supervisor/service/descendants.ts';
import { commandHash } from '../supervisor/service/run.ts';
import type { Spec } from '../supervisor/store.ts';
import { condition, enter, launch, scriptFiles } from './scripts.ts';

/** The programs that a unit names, and that the panel calls. */
export const unitPrograms = {
    sh: '/bin/sh',
    setpriv: '/usr/bin/setpriv',
    systemctl: '/usr/bin/systemctl',
    systemdCat: '/usr/bin/systemd-cat',
    journalctl: '/usr/bin/journalctl'
} as const;

/** Where systemd makes the folders that it removes with a run. */
const runtimeRoot = '/run';
/** A shorter time would end the script that writes down how the program ended. */
const leastStopSeconds = 2;
/** What systemd adds to the environment; a service gets what it was given. */
const added = [
    'LANG',
    'INVOCATION_ID',
    'JOURNAL_STREAM',
    'SYSTEMD_EXEC_PID',
    'MEMORY_PRESSURE_WATCH',
    'MEMORY_PRESSURE_WRITE'
];

/** A service that systemd keeps. */
export interface UnitParts {
    /** The service's folder. */
    readonly folder: string;
    readonly owner: string;
    readonly name: string;
    readonly spec: Spec;
}

/** How the names of all units of a panel begin. @param folder - where the panel keeps its services */
export function unitPrefix(folder: string): string {
    return `portico-${hash(folder, 8)}-`;
}

/** Name of a unit: it holds a part of a secret of the service, and stays the same when the service gets another owner. */
export function unitName(folder: string, { name, spec }: Pick<UnitParts, 'name' | 'spec'>): string {
    return `${unitPrefix(folder)}${name}-${hash(spec.mark, 12)}.service`;
}

/** Where the panel kept the service of a unit, by the unit's text; null when it does not say so. */
export function folderOfUnit(text: string): string | null {
    const quoted = /^RequiresMountsFor="(.*)"$/m.exec(text)?.[1];
    return (
        quoted?.replace(/%%|\\(?:x([0-9a-f]{2})|(.))/g, (whole, hex?: string, plain?: string) =>
            whole === '%%'
                ? '%'
                : hex === undefined
                  ? (plain ?? '')
                  : String.fromCharCode(Number.parseInt(hex, 16))
        ) ?? null
    );
}

/** What marks the lines of a service in the journal. */
export function journalIdentifier({ mark }: Spec): string {
    return `portico-${hash(mark, 12)}`;
}

/** Text of the unit's file. It holds no part of the environment. */
export function renderUnit({ folder, owner, name, spec }: UnitParts): string {
    const { command, mark } = spec;
    const { limits, restart, stopSeconds, stopSignal, account, privateFiles } = command;
    const files = privateFiles === undefined ? null : `portico-service-${mark}`;
    const current = commandHash(command);
    return [
        '# Portico wrote this file and writes it again: change the service in the panel.',
        '[Unit]',
        `Description=Portico: the service ${name} of ${owner}`,
        'After=network.target',
        `RequiresMountsFor=${quote(folder)}`,
        'StartLimitIntervalSec=0',
        '',
        '[Service]',
        'Type=exec',
        ...(restart === 'once'
            ? [`ExecCondition=${line([unitPrograms.sh, '-c', condition, 'portico-service', folder])}`]
            : []),
        `ExecStartPre=${script(folder, 'before', [current, files === null ? '' : `${runtimeRoot}/${files}`])}`,
        `ExecStart=${line(startOf(spec, files))}`,
        `ExecStopPost=${script(folder, 'after', [restart])}`,
        // systemd opens it before the start counts as done, as root: afterwards the folder may move to another owner.
        `StandardInput=file:${folder.replaceAll('%', '%%')}/environment-${current}`,
        `SyslogIdentifier=${journalIdentifier(spec)}`,
        `UnsetEnvironment=${added.filter((each) => !Object.hasOwn(command.env, each)).join(' ')}`,
        'UMask=0077',
        ...(files === null
            ? []
            : [`RuntimeDirectory=${files}`, `RuntimeDirectoryMode=${account === null ? '0700' : '0711'}`]),
        'KillMode=mixed',
        `KillSignal=${stopSignal}`,
        `TimeoutStopSec=${Math.max(stopSeconds, leastStopSeconds)}`,
        'TimeoutStartSec=120',
        `Restart=${restart === 'never' || restart === 'once' ? 'no' : restart}`,
        'RestartSec=500ms',
        // systemd takes the end by these for success; only exit code 0 is.
        ...(restart === 'on-failure' ? ['RestartForceExitStatus=SIGHUP SIGINT SIGTERM SIGPIPE'] : []),
        ...(limits.memoryBytes === undefined ? [] : [`MemoryMax=${limits.memoryBytes}`, 'MemorySwapMax=0']),
        ...(limits.cpuPercent === undefined ? [] : [`CPUQuota=${limits.cpuPercent}%`]),
        ...(limits.processes === undefined ? [] : [`TasksMax=${limits.processes}`]),
        '',
        '[Install]',
        'WantedBy=multi-user.target',
        ''
    ].join('\n');
}

/** The environment as text of the shell, for a file that only the panel's account can read. @throws TypeError for a name that is none */
export function renderEnvironment({ command, mark }: Spec): string {
    const home = command.privateFiles === undefined ? command.cwd : `${runtimeRoot}/portico-service-${mark}`;
    const all = { HOME: home, ...command.env, [marker]: mark };
    return Object.entries(all)
        .map(([name, value]) => {
            if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
                throw new TypeError(`${JSON.stringify(name)} is no name of an environment variable`);
            }
            return `export ${name}='${value.replaceAll("'", "'\\''")}'\n`;
        })
        .join('');
}

/** Each command of the chain becomes the next one, so that the process that systemd watches is the program. */
function startOf(spec: Spec, files: string | null): readonly string[] {
    const { account, cwd, path, args } = spec.command;
    const { sh, setpriv, systemdCat } = unitPrograms;
    return [
        systemdCat,
        `--identifier=${journalIdentifier(spec)}`,
        '--priority=info',
        '--stderr-priority=warning',
        '--level-prefix=false',
        ...[sh, '-c', enter, 'portico-service'],
        files === null ? cwd : `${runtimeRoot}/${files}`,
        ...(account === null
            ? []
            : [setpriv, `--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups', '--']),
        ...[sh, '-c', launch, 'portico-service'],
        path,
        ...args
    ];
}

function script(folder: string, name: keyof typeof scriptFiles, args: readonly string[]): string {
    return line([unitPrograms.sh, `${folder}/${scriptFiles[name]}`, folder, ...args]);
}

/** A command line of a unit; with the colon, systemd replaces no variables in it. */
function line([program = '', ...args]: readonly string[]): string {
    return [`:${program}`, ...args.map(quote)].join(' ');
}

/** Source: systemd.syntax(7), quoting; systemd.unit(5), specifiers. */
function quote(text: string): string {
    const escaped = text.replace(/[\\"%\u0000-\u001f\u007f]/g, (each) =>
        each === '%'
            ? '%%'
            : each === '"' || each === '\\'
              ? `\\${each}`
              : `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`
    );
    return `"${escaped}"`;
}

function hash(text: string, length: number): string {
    return createHash('sha256').update(text).digest('hex').slice(0, length);
}
