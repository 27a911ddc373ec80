/** What is stored of a repository, read and shaped. */
import { createHash } from 'node:crypto';

import type { RepositoryRow } from '../entities.ts';
import { type Connection, placeOf, type Secrets } from '../targets/connection.ts';

/** How a check ended. */
export interface CheckResult {
    readonly at: string;
    readonly ok: boolean;
    readonly message: string | null;
}

/** How a repository was seen last. */
export interface RepositoryStatus {
    readonly state: 'ready' | 'locked' | 'unreachable' | 'damaged';
    readonly message: string | null;
    readonly snapshots: number | null;
    readonly storedBytes: number | null;
    /** When the sizes were asked for; milliseconds since 1970. */
    readonly readAt?: number;
    /** The panel uses it, or was killed while it did. */
    readonly isUsed?: boolean;
}

/** Which state a failure tells of, by its reason. */
export const stateOfFailure: Readonly<Record<string, RepositoryStatus['state']>> = {
    LOCKED: 'locked',
    PASSWORD_WRONG: 'damaged',
    NOT_A_REPOSITORY: 'damaged',
    TARGET_UNREACHABLE: 'unreachable',
    TARGET_REFUSED: 'unreachable',
    HOST_KEY: 'unreachable'
};

/** Where a repository lies. */
export function connectionIn({ connection, path }: RepositoryRow): Connection {
    return connection === null ? { type: 'local', path } : (JSON.parse(connection) as Connection);
}

/** How a repository was seen last. */
export function statusOf({ status }: RepositoryRow): RepositoryStatus {
    return {
        state: 'ready',
        message: null,
        snapshots: null,
        storedBytes: null,
        ...(JSON.parse(status) as Partial<RepositoryStatus>)
    };
}

/** Its address as one text. Two remotes of rclone may differ in their options alone. */
export function uniquePlace(connection: Connection, { options }: Secrets): string {
    const place = placeOf(connection);
    return connection.type === 'rclone'
        ? `${place}#${createHash('sha256').update(JSON.stringify(options)).digest('hex').slice(0, 16)}`
        : place;
}

/** The names of the secrets that are set. */
export function namesOf({ options, ...secrets }: Secrets): readonly string[] {
    const names = Object.entries(secrets)
        .filter(([, value]) => value !== undefined)
        .map(([name]) => name);
    return [...names, ...(options === undefined ? [] : ['remote.options'])].sort();
}
