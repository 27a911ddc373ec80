/** What rides on a hapi request of ours. */
import type { Caller } from '../../../platform/call.ts';
import type { HttpCall } from './http-call.ts';
import type { Excerpt } from './input/excerpt.ts';
import type { Rehearsal } from './rehearsal.ts';

/** The fields of `request.app`. */
export interface RequestState {
    id: string;
    ip: string;
    call: HttpCall | null;
    /** The caller may use the route: from here on, a route that records itself does so. */
    admitted?: true;
    /** Set on the dry run that decides about an upgrade. */
    readonly upgrading?: true;
    readonly ticket?: string;
    /** Set on a call that the panel itself makes for a user: no token is asked for. */
    readonly caller?: Caller;
    /** Set on a call that is only tried. */
    readonly rehearsal?: Rehearsal;
    /** Set where only the beginning of the answer is wanted. */
    readonly excerpt?: Excerpt;
    /** What the route's own ticket was issued with. */
    ticketData?: unknown;
}
