/** Snapshots as they lie in a repository. What was read once is remembered until something writes to it. */
import { errors } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { Restic } from '../restic/restic.ts';
import { pinTag } from '../runs/keep.ts';
import { noteName, type SnapshotNote, type StagedSource } from '../runs/sources.ts';

/** One snapshot. */
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

const types = { file: 'file', dir: 'folder', symlink: 'link' } as const;
const mostFolders = 500;
const mostFound = 1_000;

/** Reads snapshots. */
export class Snapshots {
    readonly #restic: Restic;
    readonly #repositories: Repositories;
    readonly #lists = new Map<number, readonly Snapshot[]>();
    readonly #folders = new Map<string, readonly SnapshotEntry[]>();

    constructor(restic: Restic, repositories: Repositories) {
        this.#restic = restic;
        this.#repositories = repositories;
    }

    /** Newest first. */
    async list(row: RepositoryRow, signal?: AbortSignal): Promise<readonly Snapshot[]> {
        const known = this.#lists.get(row.id);
        if (known !== undefined) {
            return known;
        }
        const target = await this.#repositories.target(row);
        const options = signal === undefined ? {} : { signal };
        const { documents } = await this.#restic.run(target, ['snapshots', '--no-lock'], options);
        const found = documents.map(snapshotOf).sort((one, two) => two.time.localeCompare(one.time));
        this.#lists.set(row.id, found);
        return found;
    }

    /** @throws NOT_FOUND 40400 */
    async get(row: RepositoryRow, id: string): Promise<Snapshot> {
        const found = (await this.list(row)).find((each) => each.id === id || each.id.startsWith(id));
        if (found === undefined) {
            throw errors.notFound('There is no snapshot of that id');
        }
        return found;
    }

    /** What a folder of a snapshot holds. A snapshot never changes, so it is asked once. @throws NOT_FOUND 40400 */
    async files(row: RepositoryRow, { id }: Snapshot, path: string): Promise<readonly SnapshotEntry[]> {
        const key = `${row.id}:${id}:${path}`;
        const known = this.#folders.get(key);
        if (known !== undefined) {
            return known;
        }
        const target = await this.#repositories.target(row);
        const { documents } = await this.#restic.run(target, ['ls', '--no-lock', id, path]);
        const found = documents.filter((document) => document['struct_type'] === 'node').map(entryOf);
        if (path !== '/' && found.length === 0) {
            throw errors.notFound('There is nothing at that path in the snapshot');
        }
        const children = found.filter((entry) => parentOf(entry.path) === path);
        if (this.#folders.size >= mostFolders) {
            this.#folders.delete(this.#folders.keys().next().value ?? '');
        }
        this.#folders.set(key, children);
        return children;
    }

    /** Files whose name fits a pattern, at most 1,000. */
    async search(row: RepositoryRow, { id }: Snapshot, pattern: string): Promise<readonly SnapshotEntry[]> {
        const target = await this.#repositories.target(row);
        const { documents } = await this.#restic.run(target, [
            'find',
            '--no-lock',
            `--snapshot=${id}`,
            '--',
            pattern
        ]);
        return documents
            .flatMap(({ matches }) => (matches ?? []) as readonly Readonly<Record<string, unknown>>[])
            .slice(0, mostFound)
            .map((match) => entryOf({ ...match, name: String(match['path']).split('/').at(-1) }));
    }

    /** What the snapshot says of itself; null for one that this plugin did not make. */
    async note(
        row: RepositoryRow,
        { id, paths }: Snapshot,
        signal: AbortSignal
    ): Promise<SnapshotNote | null> {
        const path = paths.find((each) => each.endsWith(`/${noteName}`));
        if (path === undefined) {
            return null;
        }
        const target = await this.#repositories.target(row);
        const chunks: Uint8Array[] = [];
        for await (const chunk of await this.#restic.dump(target, ['--no-lock', id, path], signal)) {
            chunks.push(chunk);
        }
        return JSON.parse(Buffer.concat(chunks).toString('utf8')) as SnapshotNote;
    }

    /** How many files and bytes of each source are in a snapshot. */
    async counts(
        row: RepositoryRow,
        snapshotId: string,
        staged: readonly StagedSource[],
        signal: AbortSignal
    ): Promise<ReadonlyMap<StagedSource, { readonly files: number; readonly bytes: number }>> {
        const counts = new Map(staged.map((source) => [source, { files: 0, bytes: 0 }]));
        const target = await this.#repositories.target(row);
        const { documents } = await this.#restic.run(target, ['ls', '--no-lock', snapshotId], { signal });
        for (const { type, path, size } of documents) {
            const at = String(path);
            const owner = staged.find(({ paths }) => paths.some((each) => at.startsWith(`${each}/`)));
            const count = owner === undefined ? undefined : counts.get(owner);
            if (type === 'file' && count !== undefined) {
                count.files += 1;
                count.bytes += Number(size ?? 0);
            }
        }
        return counts;
    }

    /** Pins or unpins a snapshot, and sets its tags. Its id changes: restic writes it anew. */
    async tag(
        row: RepositoryRow,
        snapshot: Snapshot,
        tags: readonly string[],
        pinned: boolean
    ): Promise<Snapshot> {
        const target = await this.#repositories.target(row);
        const own = snapshot.planId === null ? [] : ['portico', `plan-${snapshot.planId}`];
        const all = [...own, ...tags, ...(pinned ? [pinTag] : [])];
        await this.#restic.run(target, ['tag', `--set=${all.join(',')}`, snapshot.id]);
        this.forget(row.id);
        const changed = (await this.list(row)).find(({ time }) => time === snapshot.time);
        return changed ?? snapshot;
    }

    /** Removes a snapshot; its data go with the next clean-up. */
    async remove(row: RepositoryRow, { id }: Snapshot, signal: AbortSignal): Promise<void> {
        const target = await this.#repositories.target(row);
        await this.#restic.run(target, ['forget', id], { signal });
        this.forget(row.id);
    }

    /** Reads the list anew next time. */
    forget(repositoryId: number): void {
        this.#lists.delete(repositoryId);
    }
}

function snapshotOf(document: Readonly<Record<string, unknown>>): Snapshot {
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

function entryOf(document: Readonly<Record<string, unknown>>): SnapshotEntry {
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

function parentOf(path: string): string {
    return path.slice(0, path.lastIndexOf('/')) || '/';
}
