/** What import and export need of other features. Implemented elsewhere, handed over by the composition root. */
import type { AuditDetail, TaskView } from '@portico/sdk';
import type { Call } from '../call.ts';

export type { TaskView } from '@portico/sdk';
export type { Recorder } from '../http/ports.ts';

/** Long work. Implemented by `tasks/`. */
export interface Tasks {
    start(options: {
        readonly kind: string;
        readonly title: string;
        readonly access: string;
        readonly call: Call;
        /** Only one task at a time has it. */
        readonly key: string;
        readonly audit: AuditDetail;
        work(run: { log(text: string): void }): Promise<unknown>;
    }): Promise<TaskView>;
}
