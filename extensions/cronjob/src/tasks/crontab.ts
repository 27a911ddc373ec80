/** Crontabs as tasks, and tasks as a crontab. Source: crontab(5) of Debian's cron. */
import { isZone } from '../schedule/schedule.ts';
import type { Draft } from './draft.ts';
import type { TaskInput } from './input/input.ts';

/** One line of a crontab that is an entry, or cannot be understood. */
export interface CrontabLine {
    /** 1 is the first. */
    readonly line: number;
    /** Null where the line makes none. */
    readonly task: TaskInput | null;
    /** What would mean something else than in cron, or why there is no task; null when all is as it was. */
    readonly problem: string | null;
}

/** How the entries of a crontab are written: that of a user, or with the account after the time, as in `/etc/crontab`. */
export type CrontabFormat = 'user' | 'system';

const assignment = /^([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/;
const entry = /^(@[a-z]+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/;
const longestName = 100;

interface Surroundings {
    readonly env: Record<string, string>;
    zone: string | null;
    interpreter: string;
}

/** Reads a crontab. @param user - the account of all entries of the format `user`; null: the panel's own */
export function readCrontab(
    text: string,
    format: CrontabFormat,
    user: string | null
): readonly CrontabLine[] {
    const around: Surroundings = { env: {}, zone: null, interpreter: '/bin/sh' };
    const lines: CrontabLine[] = [];
    for (const [index, raw] of text.split(/\r?\n/).entries()) {
        const line = raw.trim();
        const [, name, value = ''] = assignment.exec(line) ?? [];
        if (line === '' || line.startsWith('#')) {
            continue;
        }
        const problem = name === undefined ? null : assign(around, name, unquote(value));
        if (name === undefined) {
            lines.push({ line: index + 1, ...readEntry(line, format, user, around) });
        } else if (problem !== null) {
            lines.push({ line: index + 1, task: null, problem });
        }
    }
    return lines;
}

/** What is to be known of an assignment; null when it becomes a variable. */
function assign(around: Surroundings, name: string, value: string): string | null {
    if (name === 'MAILTO' || name === 'MAILFROM') {
        return 'Output is kept and not mailed: set notifyOn and a channel instead';
    }
    if (name === 'CRON_TZ' || name === 'TZ') {
        around.zone = isZone(value) ? value : null;
        return around.zone === null ? `${value} is not a time zone that this machine knows` : null;
    }
    if (name === 'SHELL') {
        around.interpreter = value;
        return null;
    }
    if (name === 'PATH' || name === 'HOME' || name === 'LOGNAME') {
        return name === 'PATH' ? 'PATH is the same for all tasks: name programs by their whole path' : null;
    }
    around.env[name] = value;
    return null;
}

function readEntry(
    line: string,
    format: CrontabFormat,
    user: string | null,
    { env, zone, interpreter }: Surroundings
): Pick<CrontabLine, 'task' | 'problem'> {
    const [, schedule, rest = ''] = entry.exec(line) ?? [];
    if (schedule === undefined) {
        return { task: null, problem: 'It is no entry: a time and a command are needed' };
    }
    const [, account, command] =
        format === 'system' ? (/^(\S+)\s+(.*)$/.exec(rest) ?? []) : [null, user, rest];
    if (command === undefined || command === '') {
        return { task: null, problem: 'It has no command' };
    }
    const { text, hasInput } = readCommand(command);
    const task: TaskInput = {
        name: text.replace(/\p{C}/gu, ' ').slice(0, longestName),
        schedule: schedule.replace(/\s+/g, ' ').replace(/^@midnight$/, '@daily'),
        script: `#!${interpreter}\n${text}\n`,
        ...(account === null || account === undefined ? {} : { user: account }),
        ...(zone === null ? {} : { timezone: zone }),
        ...(Object.keys(env).length === 0 ? {} : { env: { ...env } })
    };
    return { task, problem: hasInput ? 'What stands behind % is given to no standard input' : null };
}

/** In a crontab, `%` ends the command and begins what it reads; `\%` is the character. */
function readCommand(command: string): { readonly text: string; readonly hasInput: boolean } {
    const end = /(?<!\\)%/.exec(command)?.index ?? command.length;
    return { text: command.slice(0, end).replaceAll('\\%', '%').trim(), hasInput: end < command.length };
}

function unquote(value: string): string {
    return /^(["']).*\1$/.test(value) ? value.slice(1, -1) : value;
}

/** Writes tasks as a crontab with accounts. What cron cannot do stands in comments; values of environments are left out. */
export function writeCrontab(tasks: readonly Draft[]): string {
    return `${tasks.map(writeTask).join('\n')}${tasks.length === 0 ? '' : '\n'}`;
}

function writeTask(task: Draft): string {
    const { name, schedule, timezone, user, command, script, enabled } = task;
    const account = user ?? 'root';
    const isSimple = schedule.startsWith('@') || schedule.split(/\s+/).length === 5;
    const line = command === null ? null : `${schedule} ${account} ${command.map(quoteWord).join(' ')}`;
    const comments = [
        `# ${oneLine(name)} (time zone ${timezone})`,
        ...leftOut(task).map((what) => `# not in this file: ${what}`),
        ...(script === null ? [] : script.split('\n').map((each) => `#   ${each}`))
    ];
    return [
        ...comments,
        line !== null && isSimple && enabled ? line : `# ${line ?? `${schedule} ${account} (see above)`}`,
        ''
    ].join('\n');
}

function leftOut({
    schedule,
    enabled,
    script,
    request,
    route,
    env,
    timeoutSeconds,
    retries,
    overlap,
    limits,
    parameters,
    jitterSeconds,
    blackouts,
    then,
    sandbox
}: Draft): string[] {
    return [
        ...(enabled ? [] : ['the task is disabled']),
        ...(schedule.startsWith('@') || schedule.split(/\s+/).length === 5 ? [] : ['cron knows no seconds']),
        ...(script === null ? [] : ['the script, which follows']),
        ...(request === null ? [] : ['the request, and what is wanted of its answer']),
        ...(route === null ? [] : [`the call of ${route.id}`]),
        ...(Object.keys(env).length === 0 ? [] : [`variables ${Object.keys(env).join(', ')}`]),
        ...(timeoutSeconds === null ? [] : [`a time limit of ${timeoutSeconds} s`]),
        ...(retries === 0 ? [] : [`${retries} retries`]),
        ...(overlap === 'allow' ? [] : ['no run while the one before goes on']),
        ...(limits === null ? [] : ['limits']),
        ...(parameters.length === 0 ? [] : ['parameters']),
        ...(jitterSeconds === 0 ? [] : [`up to ${jitterSeconds} s of jitter`]),
        ...(blackouts.length === 0 ? [] : ['blackouts']),
        ...(then.length === 0 ? [] : ['tasks that follow']),
        ...(sandbox === null ? [] : ['the sandbox'])
    ];
}

/** A word for a line of a shell, in which cron takes `%` for its own. */
function quoteWord(word: string): string {
    const quoted = /^[A-Za-z0-9_./:=@,+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
    return quoted.replaceAll('%', '\\%').replaceAll('\n', ' ');
}

function oneLine(text: string): string {
    return text.replace(/\p{C}/gu, ' ');
}
