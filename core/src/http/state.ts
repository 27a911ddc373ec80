/** What rides on a hapi request of ours. */
import type { HttpCall } from './http-call.ts';

export interface RequestState {
    id: string;
    ip: string;
    call: HttpCall | null;
    /** Set on the dry run that decides about an upgrade. */
    readonly upgrading?: true;
    readonly ticket?: string;
}
