/** Checks of a task beyond the schemas. */
import { errors, messageOf } from '@portico/sdk';

import { checkParameters } from '../../parameters/checks.ts';
import { type Accounts, canRunAsOthers } from '../../runs/execution/accounts.ts';
import { interpreterOf } from '../../runs/execution/script.ts';
import { isZone, parseSchedule } from '../../schedule/schedule.ts';
import type { Draft } from '../draft.ts';
import { problemOfWritable } from './sandbox-input.ts';

/** What a draft is checked against. */
export interface CheckOptions {
    readonly accounts: Accounts;
    /** Milliseconds since 1970. */
    readonly now: number;
    /** Folders of the panel. */
    readonly ownFolders: readonly string[];
}

/** Checks what a schema cannot: schedule, program, environment and account. @throws VALIDATION_FAILED 40001 with all problems */
export async function checkDraft(
    draft: Draft,
    before: Draft | null,
    { accounts, now, ownFolders }: CheckOptions
): Promise<void> {
    const problems: { path: string; message: string }[] = [];
    const report = (path: string, message: string): void =>
        void problems.push({ path, message: `${path} ${message}` });
    checkSchedule(draft, now, report);
    checkProgram(draft, before, report);
    checkEnv(draft.env, before?.env ?? {}, report);
    checkParameters(draft, before, report);
    checkSandbox(draft, ownFolders, report);
    // A task whose account was removed can still be changed or disabled.
    if (draft.user !== null && draft.user !== before?.user) {
        const account = await accounts.find(draft.user);
        if (account === null) {
            report('user', 'is no account of this machine');
        } else if (!account.own && !canRunAsOthers()) {
            report(
                'user',
                "is not the panel's own account, and only a panel that runs as root runs tasks as others"
            );
        }
    }
    if (problems.length > 0) {
        throw errors.invalid(problems);
    }
}

type Report = (path: string, message: string) => void;

function checkSchedule({ schedule, timezone }: Draft, now: number, report: Report): void {
    const zoneIsKnown = isZone(timezone);
    if (!zoneIsKnown) {
        report('timezone', 'is not a time zone that this machine knows, such as Europe/Berlin');
    }
    try {
        const { reboot, next } = parseSchedule(schedule, zoneIsKnown ? timezone : 'UTC');
        if (!reboot && next(now) === null) {
            report('schedule', 'is never due: no date matches it');
        }
    } catch (error) {
        report('schedule', `cannot be understood: ${messageOf(error)}`);
    }
}

function checkProgram(draft: Draft, before: Draft | null, report: Report): void {
    const { command, script, request } = draft;
    const given = (['command', 'script', 'request', 'route'] as const).filter((kind) => draft[kind] !== null);
    if (given.length !== 1) {
        report(
            given[0] ?? 'command',
            given.length === 0
                ? 'is missing, and so are script, request and route: one of them is needed'
                : `and ${given.slice(1).join(', ')} exclude each other`
        );
        return;
    }
    if (request !== null) {
        checkRequest(request, before?.request?.headers ?? {}, report);
    }
    const [program] = command ?? [];
    if (program !== undefined && !/^(\/|[^/-][^/]*$)/.test(program)) {
        report('command.0', 'is the absolute path of a program, or its name without a slash');
    }
    if (script !== null) {
        try {
            interpreterOf(script);
        } catch (error) {
            report('script', `cannot be run: ${messageOf(error)}`);
        }
    }
}

function checkSandbox({ sandbox, command, script }: Draft, own: readonly string[], report: Report): void {
    if (sandbox !== null && command === null && script === null) {
        report('sandbox', 'is for programs only: this task runs none');
    }
    for (const [index, folder] of (sandbox?.writable ?? []).entries()) {
        const problem = problemOfWritable(folder, own);
        if (problem !== null) {
            report(`sandbox.writable.${index}`, problem);
        }
    }
}

function checkRequest(
    { url, headers }: NonNullable<Draft['request']>,
    kept: Readonly<Record<string, string | null>>,
    report: Report
): void {
    const parsed = URL.parse(url);
    if (parsed === null || !['http:', 'https:'].includes(parsed.protocol)) {
        report('request.url', 'is an address with http or https');
    } else if (parsed.username !== '' || parsed.password !== '') {
        report('request.url', 'holds no login: send a header instead');
    }
    for (const [name, value] of Object.entries(headers)) {
        if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name)) {
            report(`request.headers.${name}`, 'is no name of a header');
        } else if (value === null && !Object.hasOwn(kept, name)) {
            report(`request.headers.${name}`, 'has no value yet that could be kept');
        }
    }
}

function checkEnv(env: Draft['env'], kept: Draft['env'], report: Report): void {
    for (const [key, value] of Object.entries(env)) {
        if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
            report(`env.${key}`, 'is no name of a variable: letters, digits and underscores, no digit first');
        } else if (/^(PATH|NODE_OPTIONS|LD_.*|PORTICO_.*|CRONJOB_.*)$/.test(key)) {
            report(`env.${key}`, "is not a task's to set here; a script can set it itself");
        } else if (value === null && !Object.hasOwn(kept, key)) {
            report(`env.${key}`, 'has no value yet that could be kept');
        }
    }
}
