/** A task as an event stream: its progress, its log for callers who may read it, and its end. */
import type { Caller } from '../../platform/call.ts';
import type { TaskLog } from './log.ts';
import type { TaskEvent } from './schema.ts';
import { isOver, type LiveTask, mayRead, type TaskRow, viewOf } from './task.ts';

/** The events of a task that is over. */
export async function* replayTask(
    row: TaskRow,
    log: TaskLog,
    caller: Caller,
    from: number
): AsyncGenerator<TaskEvent> {
    yield progressOf(row);
    for (const { number, line } of mayRead(row, caller) ? log.from(from) : []) {
        yield lineOf(number, line);
    }
    yield { event: 'end', data: viewOf(row, caller) };
}

/** The events of a running task. A slow reader gets the newest progress, and the lines of the log that are still kept. */
export async function* followTask(
    task: LiveTask,
    caller: Caller,
    from: number,
    signal: AbortSignal
): AsyncGenerator<TaskEvent> {
    const open = mayRead(task.row, caller);
    let next = from;
    let shown = '';
    while (!signal.aborted) {
        const { revision, row } = task;
        const event = progressOf(row);
        if (JSON.stringify(event) !== shown) {
            shown = JSON.stringify(event);
            yield event;
        }
        for (const { number, line } of open ? task.log.from(next) : []) {
            next = number + 1;
            yield lineOf(number, line);
        }
        if (isOver(row.state)) {
            yield { event: 'end', data: viewOf(row, caller) };
            return;
        }
        await task.after(revision, signal);
    }
}

function lineOf(number: number, line: string): TaskEvent {
    return { event: 'log', id: String(number), data: { line } };
}

function progressOf({ state, progress }: TaskRow): TaskEvent {
    return { event: 'progress', data: { state, progress } };
}
