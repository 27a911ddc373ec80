/** The overlap policy: whether a run starts, waits or is skipped. */
import type { RunRow, TaskRow, Trigger } from '../entities.ts';

/** What asks for a run. */
export interface RunRequest {
    readonly trigger: Trigger;
    /** When it was due by the schedule, in milliseconds since 1970; null when the schedule did not ask. */
    readonly dueAt: number | null;
    /** 1 for the first attempt. */
    readonly attempt: number;
}

/** What the policy decides about a run. */
export interface Admission {
    readonly state: 'running' | 'queued' | 'skipped';
    readonly reason: string | null;
    readonly message: string | null;
}

/** How busy the task and the plugin are. */
export interface Load {
    /** The waiting runs of the task. */
    readonly waiting: readonly RunRow[];
    /** Whether a run of the task is active. */
    readonly active: boolean;
    /** Whether the setting `concurrentRuns` allows another run. */
    readonly hasRoom: boolean;
}

/** Runs of one task that were started by hand and wait. */
const maxQueued = 20;

/** Decides by the task's `overlap`. Pure. */
export function decideAdmission(
    { overlap }: TaskRow,
    { trigger }: RunRequest,
    { waiting, active, hasRoom }: Load
): Admission {
    const busy = active || waiting.length > 0;
    if (busy && overlap === 'skip') {
        return { state: 'skipped', reason: 'OVERLAP', message: 'The run before was not over' };
    }
    if (hasRoom && !(busy && overlap === 'queue')) {
        return { state: 'running', reason: null, message: null };
    }
    const queueFull =
        trigger === 'manual' ? waiting.length >= maxQueued : waiting.some((run) => run.trigger !== 'manual');
    return queueFull
        ? { state: 'skipped', reason: 'QUEUE_FULL', message: 'Enough runs wait already' }
        : { state: 'queued', reason: null, message: null };
}
