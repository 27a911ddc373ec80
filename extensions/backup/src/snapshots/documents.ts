/** What restic says of snapshots, in this plugin's shape. */
import type { CheckResult } from '../repositories/stored.ts';
import type { Document } from '../restic/output.ts';
import type { SourceResult } from '../runs/sources.ts';

/** Tag of snapshots that no rule removes. */
export const pinTag = 'portico-pinned';

/** One snapshot as the API shows it; `time` is RFC 3339. */
export interface Snapshot {
    readonly id: string;
    readonly time: string;
    readonly planId: number | null;
    readonly tags: string[];
    readonly hostname: string;
    readonly paths: readonly string[];
    readonly pinned: boolean;
}

/** One file or folder in a snapshot. */
export interface SnapshotEntry {
    readonly name: string;
    readonly path: string;
    readonly type: 'file' | 'folder' | 'link' | 'other';
    readonly size: number;
    readonly mode: number;
    readonly modifiedAt: string;
}

/** A path that differs between two snapshots. */
export interface Difference {
    readonly path: string;
    readonly change: 'added' | 'removed' | 'changed';
}

/** What a repository holds. */
export interface RepositoryStats {
    readonly snapshots: number;
    readonly logicalBytes: number;
    readonly storedBytes: number;
    readonly locks: RepositoryLock[];
    readonly lastCheck: CheckResult | null;
}

/** A lock in a repository. */
export interface RepositoryLock {
    readonly id: string;
    readonly at: string;
    readonly hostname: string;
    readonly pid: number;
    readonly exclusive: boolean;
}

/** What the record of a run says about its snapshot. */
export interface SnapshotRecord {
    readonly sources: readonly SourceResult['source'][];
    readonly bytes: number;
}

const types = { file: 'file', dir: 'folder', symlink: 'link' } as const;
/** Reads a snapshot of restic's list. */
export function snapshotOf(document: Document): Snapshot {
    const tags = (document['tags'] ?? []) as readonly string[];
    const [, plan] = tags.map((tag) => /^plan-(\d+)$/.exec(tag)).find((match) => match !== null) ?? [];
    return {
        id: String(document['id']),
        time: new Date(String(document['time'])).toISOString(),
        planId: plan === undefined ? null : Number(plan),
        tags: tags.filter((tag) => tag !== 'portico' && tag !== pinTag && !/^plan-\d+$/.test(tag)),
        hostname: String(document['hostname'] ?? ''),
        paths: (document['paths'] ?? []) as readonly string[],
        pinned: tags.includes(pinTag)
    };
}

/** Reads a file of restic's lists. */
export function entryOf(document: Document): SnapshotEntry {
    const type = String(document['type']);
    const mode = document['mode'] ?? document['permissions'];
    return {
        name: String(document['name']),
        path: String(document['path']),
        type: Object.hasOwn(types, type) ? types[type as keyof typeof types] : 'other',
        size: Number(document['size'] ?? 0),
        mode: typeof mode === 'number' ? mode & 0o7777 : 0,
        modifiedAt: new Date(String(document['mtime'])).toISOString()
    };
}

/** The folder that a path lies in. */
export function parentOf(path: string): string {
    return path.slice(0, path.lastIndexOf('/')) || '/';
}
