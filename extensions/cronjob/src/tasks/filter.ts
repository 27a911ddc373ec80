/** Which tasks a list shows. */
import { raw } from '@portico/sdk/db';

import type { RunState } from '../entities.ts';
import type { Kind } from './draft.ts';

/** What a list asks for; what is absent matches all. */
export interface TaskFilter {
    /** A part of the name. */
    readonly q?: string | undefined;
    readonly enabled?: boolean | undefined;
    readonly tag?: string | undefined;
    readonly kind?: Kind | undefined;
    /** Of the newest run that began. */
    readonly state?: RunState | undefined;
}

/** The condition of one query: a fragment of SQL in it is good for that query only. */
export function conditionOf({ q, enabled, tag, kind, state }: TaskFilter): object {
    return {
        ...(enabled === undefined ? {} : { enabled }),
        ...(kind === undefined ? {} : { [kind]: { $ne: null } }),
        // `instr` takes % and _ literally, unlike `like`.
        ...(q === undefined ? {} : { [raw('instr(lower(name), lower(?))', [q])]: { $gt: 0 } }),
        ...(tag === undefined
            ? {}
            : { [raw('(select count(*) from json_each(tags) where value = ?)', [tag])]: { $gt: 0 } }),
        ...(state === undefined
            ? {}
            : {
                  [raw(
                      (task) =>
                          `(select state from runs where task_id = ${task}.id and started_at is not null order by runs.id desc limit 1)`
                  )]: state
              })
    };
}
