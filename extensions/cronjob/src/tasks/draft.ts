/** A task as its author wrote it, complete: defaults, changes, and the columns that store it. */
import type { GroupLimits } from '@portico/sdk';

import type { Missed, NotifyOn, Overlap, TaskRow } from '../entities.ts';
import { isMask, type Parameter, parametersOf } from '../parameters/schema.ts';
import { parametersOfRow } from '../parameters/values.ts';
import type { Blackout, BlackoutPolicy } from '../schedule/blackouts.ts';
import type { TaskInput } from './input/input.ts';
import type { Sandbox } from './input/sandbox-input.ts';
import { requestOf, type RequestWork, routeOf, type RouteWork } from './input/work-input.ts';
import { type Step, stepsOf } from './steps.ts';

/** What a task runs. */
export type Kind = 'command' | 'script' | 'request' | 'route';

/** All that a caller can set of a task. */
export interface Draft {
    readonly name: string;
    readonly schedule: string;
    readonly timezone: string;
    readonly command: readonly string[] | null;
    readonly script: string | null;
    readonly request: RequestWork | null;
    readonly route: RouteWork | null;
    readonly user: string | null;
    readonly cwd: string | null;
    /** Names and values; null keeps the stored value. */
    readonly env: Readonly<Record<string, string | null>>;
    readonly timeoutSeconds: number | null;
    readonly overlap: Overlap;
    readonly retries: number;
    readonly backoffSeconds: number;
    readonly missed: Missed;
    readonly enabled: boolean;
    readonly notifyOn: NotifyOn;
    readonly deadManSeconds: number | null;
    readonly limits: GroupLimits | null;
    /** Ids of notification channels; null: those whose events match. */
    readonly channels: readonly number[] | null;
    readonly tags: readonly string[];
    readonly parameters: readonly Parameter[];
    readonly jitterSeconds: number;
    readonly blackouts: readonly Blackout[];
    readonly blackoutPolicy: BlackoutPolicy;
    readonly then: readonly Step[];
    readonly sandbox: Sandbox | null;
}

/** What a task gets that says nothing of it. */
export interface Defaults {
    readonly timezone: string;
    /** Of programs. */
    readonly sandbox: Sandbox | null;
}

/** Applies a change to a task, or to nothing (null) for a new one. */
export function draftOf(input: TaskInput, before: Draft | null, defaults: Defaults): Draft {
    const pick = <K extends keyof Draft & keyof TaskInput>(key: K, fallback: Draft[K]): Draft[K] => {
        const given = input[key];
        // The schema of the field has the type of the draft's field.
        return given === undefined
            ? (before?.[key] ?? fallback)
            : given === null
              ? fallback
              : (given as unknown as Draft[K]);
    };
    const work = workOf(input, before);
    return {
        name: pick('name', ''),
        schedule: pick('schedule', ''),
        timezone: pick('timezone', defaults.timezone),
        ...work,
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
        deadManSeconds: pick('deadManSeconds', null),
        limits: pick('limits', null),
        channels: pick('channels', null),
        tags: pick('tags', []),
        parameters:
            input.parameters === undefined
                ? (before?.parameters ?? [])
                : parametersOf(input.parameters ?? []),
        jitterSeconds: pick('jitterSeconds', 0),
        blackouts: pick('blackouts', []),
        blackoutPolicy: pick('blackoutPolicy', 'skip'),
        then: pick('then', []),
        sandbox: sandboxOf(input, before, work, defaults)
    };
}

function sandboxOf(
    { sandbox }: TaskInput,
    before: Draft | null,
    { command, script }: Work,
    defaults: Defaults
): Sandbox | null {
    if (sandbox !== undefined) {
        return sandbox === null ? null : { network: false, writable: [], ...sandbox };
    }
    const isProgram = command !== null || script !== null;
    return before === null ? (isProgram ? defaults.sandbox : null) : before.sandbox;
}

type Work = Pick<Draft, 'command' | 'script' | 'request' | 'route'>;

/** What the task runs: that of the change replaces that of before, of whatever kind it is. */
function workOf({ command, script, request, route }: TaskInput, before: Draft | null): Work {
    const given: Work = {
        command: command ?? null,
        script: script ?? null,
        request: request === undefined || request === null ? null : requestOf(request),
        route: route === undefined || route === null ? null : routeOf(route)
    };
    if (Object.values(given).some((each) => each !== null)) {
        return given;
    }
    return {
        command: command === null ? null : (before?.command ?? null),
        script: script === null ? null : (before?.script ?? null),
        request: request === null ? null : (before?.request ?? null),
        route: route === null ? null : (before?.route ?? null)
    };
}

/** Which of the four kinds of work a task does. */
export function kindOf({ command, script, request }: Pick<TaskRow, keyof Work>): Kind {
    return command !== null ? 'command' : script !== null ? 'script' : request !== null ? 'request' : 'route';
}

/** The columns of a draft, without its sealed environment. */
export function rowOf({
    env,
    command,
    request,
    route,
    limits,
    channels,
    tags,
    parameters,
    blackouts,
    then: steps,
    sandbox,
    ...draft
}: Draft): Omit<Draft, 'env' | 'then' | keyof Texts> & Texts {
    return {
        ...draft,
        command: textOrNull(command),
        request:
            request === null ? null : JSON.stringify({ ...request, headers: withoutValues(request.headers) }),
        route: textOrNull(route),
        limits: textOrNull(limits),
        channels: textOrNull(channels),
        tags: JSON.stringify(tags),
        parameters: JSON.stringify(parameters.map(withoutSecret)),
        blackouts: JSON.stringify(blackouts),
        steps: JSON.stringify(steps),
        sandbox: textOrNull(sandbox),
        envNames: JSON.stringify(Object.keys(env))
    };
}

/** Columns that hold JSON. */
type Texts = Pick<
    TaskRow,
    | 'command'
    | 'request'
    | 'route'
    | 'limits'
    | 'channels'
    | 'tags'
    | 'envNames'
    | 'parameters'
    | 'blackouts'
    | 'steps'
    | 'sandbox'
>;

/** The default of a secret parameter is sealed elsewhere. */
function withoutSecret(parameter: Parameter): Parameter {
    return parameter.secret && parameter.default !== null
        ? { ...parameter, default: { set: true } }
        : parameter;
}

/** The defaults of secret parameters by name; null keeps the stored one. */
export function secretDefaults({ parameters }: Draft): Readonly<Record<string, string | null>> {
    return Object.fromEntries(
        parameters
            .filter(({ secret, default: usual }) => secret && usual !== null)
            .map(({ name, default: usual }) => [name, isMask(usual) ? null : String(usual)])
    );
}

function withoutValues(record: object): Record<string, null> {
    return Object.fromEntries(Object.keys(record).map((name) => [name, null]));
}

function textOrNull(value: unknown): string | null {
    return value === null ? null : JSON.stringify(value);
}

/** The limits of a task's processes; null without any. */
export function limitsOf({ limits }: TaskRow): GroupLimits | null {
    return limits === null ? null : (JSON.parse(limits) as GroupLimits);
}

/** The channels that alone tell of a task; null: those whose events match. */
export function channelsOf({ channels }: TaskRow): number[] | null {
    return channels === null ? null : (JSON.parse(channels) as number[]);
}

/** The words by which tasks are found together. */
export function tagsOf({ tags }: TaskRow): string[] {
    return JSON.parse(tags) as string[];
}

/** The draft that a task was made of; the values of `env` are null. */
export function draftOfRow(task: TaskRow): Draft {
    const {
        name,
        schedule,
        timezone,
        script,
        user,
        cwd,
        timeoutSeconds,
        overlap,
        retries,
        backoffSeconds,
        missed,
        enabled,
        notifyOn,
        deadManSeconds
    } = task;
    return {
        name,
        schedule,
        timezone,
        script,
        user,
        cwd,
        timeoutSeconds,
        overlap: overlap as Draft['overlap'],
        retries,
        backoffSeconds,
        missed: missed as Draft['missed'],
        enabled,
        notifyOn: notifyOn as Draft['notifyOn'],
        deadManSeconds,
        limits: limitsOf(task),
        channels: channelsOf(task),
        tags: tagsOf(task),
        parameters: parametersOfRow(task),
        jitterSeconds: task.jitterSeconds,
        blackouts: JSON.parse(task.blackouts) as Blackout[],
        blackoutPolicy: task.blackoutPolicy as BlackoutPolicy,
        then: stepsOf(task),
        sandbox: task.sandbox === null ? null : (JSON.parse(task.sandbox) as Sandbox),
        command: task.command === null ? null : (JSON.parse(task.command) as string[]),
        request: task.request === null ? null : (JSON.parse(task.request) as RequestWork),
        route: task.route === null ? null : (JSON.parse(task.route) as RouteWork),
        env: Object.fromEntries((JSON.parse(task.envNames) as string[]).map((each) => [each, null]))
    };
}
