/** What people write about a task, and what is wrong with it beyond its shape. */
import { errors, joi } from '@portico/sdk';

import { type Accounts, runsAsOthers } from '../runs/accounts.ts';
import { isZone, parseSchedule } from '../schedule/schedule.ts';
import { interpreterOf } from '../runs/script.ts';
import type { Missed, NotifyOn, Overlap } from '../entities.ts';

/** Stands for a value that is kept and never shown. */
export interface Mask {
    readonly set: true;
}

/** A change of a task: what is absent stays, null goes back to the default. */
export interface TaskInput {
    readonly name?: string;
    readonly schedule?: string;
    readonly timezone?: string | null;
    readonly command?: readonly string[] | null;
    readonly script?: string | null;
    readonly user?: string | null;
    readonly cwd?: string | null;
    readonly env?: Readonly<Record<string, string | Mask>> | null;
    readonly timeoutSeconds?: number | null;
    readonly overlap?: Overlap | null;
    readonly retries?: number | null;
    readonly backoffSeconds?: number | null;
    readonly missed?: Missed | null;
    readonly enabled?: boolean | null;
    readonly notifyOn?: NotifyOn | null;
    readonly deadManSeconds?: number | null;
    /** Acts as If-Match. */
    readonly version?: number;
}

/** A task as it is wanted, whole. */
export interface Draft {
    readonly name: string;
    readonly schedule: string;
    readonly timezone: string;
    readonly command: readonly string[] | null;
    readonly script: string | null;
    readonly user: string | null;
    readonly cwd: string | null;
    /** Values that are kept are null. */
    readonly env: Readonly<Record<string, string | null>>;
    readonly timeoutSeconds: number | null;
    readonly overlap: Overlap;
    readonly retries: number;
    readonly backoffSeconds: number;
    readonly missed: Missed;
    readonly enabled: boolean;
    readonly notifyOn: NotifyOn;
    readonly deadManSeconds: number | null;
}

const year = 366 * 86_400;
/** Without zero bytes, which no program can be handed. */
const text = () => joi.string().pattern(/^[^\0]*$/, 'text without zero bytes');

const fields = {
    schedule: joi
        .string()
        .trim(true)
        .max(200)
        .description(
            'Five fields, six with seconds first, or @yearly, @monthly, @weekly, @daily, @hourly, @reboot'
        ),
    timezone: joi.string().max(64).allow(null).description('IANA name; default: the setting `timezone`'),
    command: joi
        .array()
        .items(text().max(32_768).allow(''))
        .min(1)
        .max(1_000)
        .allow(null)
        .description('Program and arguments; either this or `script`'),
    script: text()
        .max(262_144)
        .allow(null)
        .description('Begins with `#!` and an interpreter, or is for /bin/sh'),
    user: joi.string().max(64).allow(null).description("Account of the machine; default: the panel's own"),
    cwd: text()
        .pattern(/^\//, 'absolute path')
        .max(4_096)
        .allow(null)
        .description('Default: the home of the account, or /'),
    env: joi
        .record(
            joi.alternatives(text().max(32_768).allow(''), joi.object({ set: joi.valid(true).required() }))
        )
        .max(200)
        .allow(null)
        .description(
            'Values are never read back: `{ "set": true }` stands for each, and keeps it in a write'
        ),
    timeoutSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .allow(null)
        .description('Then the run is ended with all of its processes; null: never'),
    overlap: joi
        .valid('skip', 'queue', 'allow', null)
        .description('While the run before is not over; default skip'),
    retries: joi
        .number()
        .integer()
        .min(0)
        .max(20)
        .allow(null)
        .description('After a failure or a timeout; default 0'),
    backoffSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .allow(null)
        .description(
            'Before the first retry; twice as long before each further one, a day at most; default 60'
        ),
    missed: joi
        .valid('skip', 'run-once', null)
        .description('What passed while nothing could run; default skip'),
    enabled: joi.boolean().allow(null).description('Default true'),
    notifyOn: joi
        .valid('never', 'failure', 'change', 'always', null)
        .description('`change`: the first failure, and the first success after one; default failure'),
    deadManSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(year)
        .allow(null)
        .description('An alert when no run succeeded for so long')
};
const name = joi
    .string()
    .pattern(/^[^\p{C}]*\S[^\p{C}]*$/u, 'name')
    .max(100);
const readOnly = {
    id: joi.any(),
    createdAt: joi.any(),
    updatedAt: joi.any(),
    nextRunAt: joi.any(),
    retryAt: joi.any(),
    overdueSince: joi.any(),
    lastRun: joi.any()
};

export const newTask = joi.object({ ...fields, name: name.required(), schedule: fields.schedule.required() });
export const changedTask = joi.object({
    ...fields,
    ...readOnly,
    name,
    version: joi.number().integer().min(1)
});

/** A change on top of what is there; null for a new task. */
export function draftOf(input: TaskInput, before: Draft | null, usualZone: string): Draft {
    const pick = <K extends keyof Draft & keyof TaskInput>(key: K, usual: Draft[K]): Draft[K] => {
        const given = input[key];
        return given === undefined
            ? (before?.[key] ?? usual)
            : given === null
              ? usual
              : (given as unknown as Draft[K]);
    };
    const [command, script] = [pick('command', null), pick('script', null)];
    return {
        name: pick('name', ''),
        schedule: pick('schedule', ''),
        timezone: pick('timezone', usualZone),
        // One takes the place of the other.
        command:
            input.script !== undefined && input.script !== null && input.command === undefined
                ? null
                : command,
        script:
            input.command !== undefined && input.command !== null && input.script === undefined
                ? null
                : script,
        user: pick('user', null),
        cwd: pick('cwd', null),
        env:
            input.env === undefined
                ? (before?.env ?? {})
                : Object.fromEntries(
                      Object.entries(input.env ?? {}).map(([key, value]) => [
                          key,
                          typeof value === 'string' ? value : null
                      ])
                  ),
        timeoutSeconds: pick('timeoutSeconds', null),
        overlap: pick('overlap', 'skip'),
        retries: pick('retries', 0),
        backoffSeconds: pick('backoffSeconds', 60),
        missed: pick('missed', 'skip'),
        enabled: pick('enabled', true),
        notifyOn: pick('notifyOn', 'failure'),
        deadManSeconds: pick('deadManSeconds', null)
    };
}

/** @throws VALIDATION_FAILED 40001 with everything that is wrong */
export async function checkDraft(
    draft: Draft,
    before: Draft | null,
    accounts: Accounts,
    now: number
): Promise<void> {
    const faults: { path: string; message: string }[] = [];
    const fault = (path: string, message: string): void =>
        void faults.push({ path, message: `${path} ${message}` });
    checkTime(draft, now, fault);
    checkProgram(draft, fault);
    checkEnv(draft.env, before?.env ?? {}, fault);
    // An account that is gone keeps nobody from changing, or disabling, the task that had it.
    if (draft.user !== null && draft.user !== before?.user) {
        const account = await accounts.find(draft.user);
        if (account === null) {
            fault('user', 'is no account of this machine');
        } else if (!account.own && !runsAsOthers()) {
            fault(
                'user',
                "is not the panel's own account, and only a panel that runs as root runs tasks as others"
            );
        }
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}

type Fault = (path: string, message: string) => void;

function checkTime({ schedule, timezone }: Draft, now: number, fault: Fault): void {
    const zoned = isZone(timezone);
    if (!zoned) {
        fault('timezone', 'is no time zone that this machine knows, such as Europe/Berlin');
    }
    try {
        const { reboot, next } = parseSchedule(schedule, zoned ? timezone : 'UTC');
        if (!reboot && next(now) === null) {
            fault('schedule', 'is never due: no date is like that');
        }
    } catch (error) {
        fault('schedule', `cannot be understood: ${error instanceof Error ? error.message : String(error)}`);
    }
}

function checkProgram({ command, script }: Draft, fault: Fault): void {
    if ((command === null) === (script === null)) {
        fault(
            'command',
            command === null
                ? 'is missing, and so is script: one of them is needed'
                : 'and script exclude each other'
        );
        return;
    }
    const [program] = command ?? [];
    if (program !== undefined && !/^(\/|[^/-][^/]*$)/.test(program)) {
        fault('command.0', 'is the absolute path of a program, or its name without a slash');
    }
    if (script !== null) {
        try {
            interpreterOf(script);
        } catch (error) {
            fault('script', `cannot be run: ${error instanceof Error ? error.message : String(error)}`);
        }
    }
}

function checkEnv(env: Draft['env'], kept: Draft['env'], fault: Fault): void {
    for (const [key, value] of Object.entries(env)) {
        if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
            fault(`env.${key}`, 'is no name of a variable: letters, digits and underscores, no digit first');
        } else if (/^(PATH|NODE_OPTIONS|LD_.*|PORTICO_.*|CRONJOB_.*)$/.test(key)) {
            fault(`env.${key}`, "is not a task's to set here; a script can set it itself");
        } else if (value === null && !Object.hasOwn(kept, key)) {
            fault(`env.${key}`, 'has no value yet that could be kept');
        }
    }
}
