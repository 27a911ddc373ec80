/** A server with what is needed to work on it. */
import type { ServerRow } from '../entities.ts';
import type { Access, Kind } from './kind.ts';

/** A server with what is needed to work on it. */
export interface Target {
    readonly server: ServerRow;
    readonly kind: Kind;
    /** Sessions as the panel's own account. */
    readonly admin: Access;
}

/** Finds the server of a number. @throws NOT_FOUND 40400 */
export type FindTarget = (id: number) => Promise<Target>;
