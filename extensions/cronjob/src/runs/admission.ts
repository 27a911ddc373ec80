/** What asks for runs, and the overlap policy: whether a run starts, waits or is skipped. */
import type { EntityManager } from '@portico/sdk/db';

import type { RunRow, TaskRow, Trigger } from '../entities.ts';
import { findRuns } from '../queries.ts';

/** What asks for a run. */
export interface RunRequest {
    readonly trigger: Trigger;
    /** When it was due by the schedule, in milliseconds since 1970; null when the schedule did not ask. */
    readonly dueAt: number | null;
    /** 1 for the first attempt. */
    readonly attempt: number;
    /** Whether a blackout skips it. Default false. */
    readonly isHeld?: boolean;
    /** What it gets of the run before it in its chain, of a caller, or of the attempt before. Default: nothing. */
    readonly given?: Partial<
        Pick<RunRow, 'parentRunId' | 'depth' | 'askedBy' | 'parameters' | 'secretParameters'>
    >;
}

/** The request of a retry: with the parameters of the attempt before, at its place in its chain. */
export async function retryRequest(
    em: EntityManager,
    { retryAttempt: attempt, retryOf }: TaskRow
): Promise<RunRequest> {
    const [run] = retryOf === null ? [] : await findRuns(em, { id: retryOf });
    const common = { trigger: 'retry', dueAt: null, attempt } as const;
    if (run === undefined) {
        return common;
    }
    const { parentRunId, depth, askedBy, parameters, secretParameters } = run;
    return { ...common, given: { parentRunId, depth, askedBy, parameters, secretParameters } };
}

/** A run that is asked for. */
export interface WantedRun {
    readonly task: TaskRow;
    readonly request: RunRequest;
}

/** A run, and what was decided about it. */
export interface AdmittedRun extends WantedRun {
    readonly admission: Admission;
}

/** How busy the plugin is. */
export interface AllLoad {
    /** By task, what asked for its runs that wait. */
    readonly waiting: ReadonlyMap<number, readonly Trigger[]>;
    /** Tasks with a run that is active. */
    readonly active: ReadonlySet<number>;
    /** How many runs may begin. */
    readonly room: number;
}

/** What the policy decides about a run. */
export interface Admission {
    readonly state: 'running' | 'queued' | 'skipped';
    readonly reason: string | null;
    readonly message: string | null;
}

/** How busy the task and the plugin are. */
export interface Load {
    /** What asked for the runs of the task that wait. */
    readonly waiting: readonly Trigger[];
    /** Whether a run of the task is active. */
    readonly active: boolean;
    /** Whether the setting `concurrentRuns` allows another run. */
    readonly hasRoom: boolean;
}

/** Runs of one task that wait and that its schedule did not ask for. */
const maxQueued = 20;

/** Decides by the task's `overlap`. Pure. */
export function decideAdmission(
    { overlap }: TaskRow,
    { trigger, isHeld = false }: RunRequest,
    { waiting, active, hasRoom }: Load
): Admission {
    if (isHeld) {
        return { state: 'skipped', reason: 'BLACKOUT', message: 'It was due in a blackout' };
    }
    const busy = active || waiting.length > 0;
    if (busy && overlap === 'skip') {
        return { state: 'skipped', reason: 'OVERLAP', message: 'The run before was not over' };
    }
    if (hasRoom && !(busy && overlap === 'queue')) {
        return { state: 'running', reason: null, message: null };
    }
    const queueFull = isByClock(trigger) ? waiting.some(isByClock) : waiting.length >= maxQueued;
    return queueFull
        ? { state: 'skipped', reason: 'QUEUE_FULL', message: 'Enough runs wait already' }
        : { state: 'queued', reason: null, message: null };
}

/** Decides about runs that are asked for at once, in their order: each counts for those after it. Pure. */
export function admitRuns(wanted: readonly WantedRun[], load: AllLoad): readonly AdmittedRun[] {
    const [waiting, active] = [new Map(load.waiting), new Set(load.active)];
    let { room } = load;
    return wanted.map(({ task, request }) => {
        const before = waiting.get(task.id) ?? [];
        const isActive = active.has(task.id);
        const admission = decideAdmission(task, request, {
            waiting: before,
            active: isActive,
            hasRoom: room > 0
        });
        if (admission.state === 'running') {
            active.add(task.id);
            room -= 1;
        } else if (admission.state === 'queued') {
            waiting.set(task.id, [...before, request.trigger]);
        }
        return { task, request, admission };
    });
}

/** What asked for the runs of tasks that wait, by task. */
export async function waitingRuns(
    em: EntityManager,
    taskIds: readonly number[]
): Promise<ReadonlyMap<number, readonly Trigger[]>> {
    const rows = await em.execute<{ id: number; trigger: Trigger }[]>(
        `select task_id as id, trigger from runs where state = 'queued' and task_id in (${taskIds.map(() => '?').join(', ')})`,
        [...taskIds]
    );
    return new Map(
        [...Map.groupBy(rows, ({ id }) => id)].map(([id, of]) => [id, of.map(({ trigger }) => trigger)])
    );
}

/** Whether the schedule asked; one such run of a task waits at most. */
function isByClock(trigger: Trigger): boolean {
    return trigger === 'schedule' || trigger === 'missed' || trigger === 'retry';
}
