/** What is scheduled on the machine by cron and by systemd. */
import { errors, type ExecResult, isFailure } from '@portico/sdk';

import { canRunAsOthers } from '../runs/execution/accounts.ts';
import type { Ctx } from '../settings.ts';
import { type CrontabLine, readCrontab } from '../tasks/crontab.ts';
import { readTimers, tasksOfTimer, timerProperties } from './timers.ts';

/** Something that tasks can be taken from. */
export interface Source {
    /** Such as `crontab:www-data`, `system:/etc/cron.d/php` or `timer:logrotate.timer`. */
    readonly id: string;
    readonly kind: 'crontab' | 'system' | 'timer';
    readonly path: string;
    /** Of a user's crontab; null of others, whose entries name accounts. */
    readonly user: string | null;
    readonly lines: readonly CrontabLine[];
}

const systemCrontab = '/etc/crontab';
const systemFolder = '/etc/cron.d';
/** Of Debian and its kin, and of the others. */
const spools = ['/var/spool/cron/crontabs', '/var/spool/cron'];
const accountName = /^[a-z_][a-z0-9_.-]{0,31}$/i;
/** Names that cron reads; others, such as `php.dpkg-old`, it leaves out. */
const readName = /^[A-Za-z0-9_-]+$/;

/** Everything that is there and that the panel may read. What is missing on this machine gives nothing. */
export async function findSources(ctx: Ctx): Promise<readonly Source[]> {
    return [...(await systemCrontabs(ctx)), ...(await userCrontabs(ctx)), ...(await timers(ctx))];
}

/** One of them. @throws NOT_FOUND 40400 */
export async function findSource(ctx: Ctx, id: string): Promise<Source> {
    const source = (await findSources(ctx)).find((each) => each.id === id);
    if (source === undefined) {
        throw errors.notFound(`There is no source ${id}`);
    }
    return source;
}

async function systemCrontabs(ctx: Ctx): Promise<Source[]> {
    const names = (await list(ctx, systemFolder)).filter((name) => readName.test(name));
    const sources: Source[] = [];
    for (const path of [systemCrontab, ...names.map((name) => `${systemFolder}/${name}`)]) {
        const text = await output(ctx, 'cat', ['--', path]);
        if (text !== null) {
            const lines = readCrontab(text, 'system', null);
            sources.push({ id: `system:${path}`, kind: 'system', path, user: null, lines });
        }
    }
    return sources;
}

async function userCrontabs(ctx: Ctx): Promise<Source[]> {
    if (!canRunAsOthers()) {
        const text = await output(ctx, 'crontab', ['-l']);
        const lines = text === null ? [] : readCrontab(text, 'user', null);
        return text === null ? [] : [{ id: 'crontab:', kind: 'crontab', path: '', user: null, lines }];
    }
    const sources: Source[] = [];
    for (const spool of spools) {
        for (const user of (await list(ctx, spool)).filter((name) => accountName.test(name))) {
            const text = await output(ctx, 'crontab', ['-l', '-u', user]);
            const id = `crontab:${user}`;
            if (text !== null && !sources.some((each) => each.id === id)) {
                const lines = readCrontab(text, 'user', user);
                sources.push({ id, kind: 'crontab', path: `${spool}/${user}`, user, lines });
            }
        }
    }
    return sources;
}

/** Where systemd is not the first process, it lists files of timers, but shows none of them. */
async function timers(ctx: Ctx): Promise<Source[]> {
    const listed = await output(ctx, 'systemctl', [
        ...['list-unit-files', '--type=timer', '--state=enabled', '--no-legend', '--no-pager', '--plain']
    ]);
    const ids = (listed ?? '').split('\n').flatMap((line) => /^(\S+\.timer)\s/.exec(line)?.[1] ?? []);
    const shown =
        ids.length === 0
            ? null
            : await output(ctx, 'systemctl', [
                  'show',
                  '--no-pager',
                  `--property=${timerProperties.join(',')}`,
                  '--',
                  ...ids
              ]);
    return readTimers(shown ?? '').map((timer) => ({
        id: `timer:${timer.id}`,
        kind: 'timer',
        path: timer.path,
        user: null,
        lines: tasksOfTimer(timer)
    }));
}

async function list(ctx: Ctx, folder: string): Promise<readonly string[]> {
    return ((await output(ctx, 'ls', ['-1', '--', folder])) ?? '').split('\n').filter((name) => name !== '');
}

/** What a program prints; null where it is missing or fails. */
async function output(ctx: Ctx, file: string, args: readonly string[]): Promise<string | null> {
    let result: ExecResult;
    try {
        result = await ctx.exec(file, [...args], { timeoutSeconds: 20 });
    } catch (error) {
        if (isFailure(error)) {
            return null;
        }
        throw error;
    }
    return result.code === 0 ? result.stdout : null;
}
