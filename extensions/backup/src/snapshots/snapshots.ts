/** Snapshots as they lie in a repository. What was read once is remembered until something writes to it. */
import { errors } from '@portico/sdk';

import { type RepositoryRow, RunEntity } from '../entities.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { CheckResult } from '../repositories/stored.ts';
import type { Document } from '../restic/output.ts';
import type { Restic } from '../restic/restic.ts';
import { notePathIn, type SnapshotNote, type SourceResult, type StagedSource } from '../runs/sources.ts';
import type { Ctx } from '../settings.ts';
import {
    type Difference,
    entryOf,
    parentOf,
    pinTag,
    type RepositoryLock,
    type RepositoryStats,
    type Snapshot,
    type SnapshotEntry,
    snapshotOf,
    type SnapshotRecord
} from './documents.ts';

const mostFolders = 500;
const mostFound = 1_000;
const mostLocks = 20;
const mostDifferences = 10_000;
/** A route has 30 seconds. */
const answerSeconds = 25;

/** Reads the snapshots of repositories and their folders, and keeps what was read for the next call. */
export class Snapshots {
    readonly #ctx: Ctx;
    readonly #restic: Restic;
    readonly #repositories: Repositories;
    readonly #lists = new Map<number, readonly Snapshot[]>();
    /** The last read of each list. What was written to a repository meanwhile may be missing in it: then it is gone from here. */
    readonly #readings = new Map<number, symbol>();
    readonly #folders = new Map<string, readonly SnapshotEntry[]>();

    constructor(ctx: Ctx, restic: Restic, repositories: Repositories) {
        this.#ctx = ctx;
        this.#restic = restic;
        this.#repositories = repositories;
    }

    /** Newest first. */
    async list(row: RepositoryRow, signal?: AbortSignal): Promise<readonly Snapshot[]> {
        const known = this.#lists.get(row.id);
        if (known !== undefined) {
            return known;
        }
        return this.#read(row, { signal, timeoutSeconds: answerSeconds });
    }

    /** Reads the list anew, and the sizes of the repository. */
    refresh(row: RepositoryRow, signal: AbortSignal): Promise<readonly Snapshot[]> {
        return this.#measure(row, null, signal);
    }

    /** Reads the sizes of the repository, and the list unless it is known. */
    measure(row: RepositoryRow, signal: AbortSignal): Promise<readonly Snapshot[]> {
        return this.#measure(row, this.#lists.get(row.id) ?? null, signal);
    }

    async #measure(
        row: RepositoryRow,
        known: readonly Snapshot[] | null,
        signal: AbortSignal
    ): Promise<readonly Snapshot[]> {
        const target = await this.#repositories.target(row);
        const [found, { documents }] = await Promise.all([
            known ?? this.#read(row, { signal }),
            this.#restic.run(target, ['stats', '--no-lock', '--mode=raw-data'], { signal })
        ]);
        await this.#repositories.see(row.id, null, {
            snapshots: found.length,
            storedBytes: Number(documents[0]?.['total_size'] ?? 0)
        });
        return found;
    }

    async #read(
        row: RepositoryRow,
        options: { readonly signal?: AbortSignal | undefined; readonly timeoutSeconds?: number }
    ): Promise<readonly Snapshot[]> {
        const reading = Symbol('reading');
        this.#readings.set(row.id, reading);
        try {
            const target = await this.#repositories.target(row);
            const { documents } = await this.#restic.run(target, ['snapshots', '--no-lock'], options);
            const found = documents.map(snapshotOf).sort((one, two) => two.time.localeCompare(one.time));
            if (this.#readings.get(row.id) === reading) {
                this.#lists.set(row.id, found);
            }
            await this.#repositories.see(row.id, null, { snapshots: found.length });
            return found;
        } catch (error) {
            options.signal?.throwIfAborted();
            await this.#repositories.see(row.id, error);
            throw error;
        }
    }

    /** What the repository holds, and who has locked it, as it is now. */
    async stats(row: RepositoryRow, signal: AbortSignal): Promise<RepositoryStats> {
        const options = { signal, timeoutSeconds: answerSeconds };
        const target = await this.#repositories.target(row);
        const sizeOf = async (mode: string): Promise<number> => {
            const { documents } = await this.#restic.run(
                target,
                ['stats', '--no-lock', `--mode=${mode}`],
                options
            );
            return Number(documents[0]?.['total_size'] ?? 0);
        };
        const [snapshots, logicalBytes, storedBytes, locks] = await Promise.all([
            this.#read(row, options),
            sizeOf('restore-size'),
            sizeOf('raw-data'),
            this.#locks(row, signal)
        ]);
        await this.#repositories.see(row.id, null, { snapshots: snapshots.length, storedBytes });
        return {
            snapshots: snapshots.length,
            logicalBytes,
            storedBytes,
            locks,
            lastCheck: row.lastCheck === null ? null : (JSON.parse(row.lastCheck) as CheckResult)
        };
    }

    async #locks(row: RepositoryRow, signal: AbortSignal): Promise<RepositoryLock[]> {
        const target = await this.#repositories.target(row);
        const ids: string[] = [];
        await this.#restic.run(target, ['list', 'locks', '--no-lock'], {
            signal,
            timeoutSeconds: answerSeconds,
            onLine: (line) => void (/^[0-9a-f]{64}$/.test(line) && ids.push(line))
        });
        const read = async (id: string): Promise<RepositoryLock | null> => {
            const { documents } = await this.#restic.run(target, ['cat', 'lock', id, '--no-lock'], {
                signal,
                timeoutSeconds: answerSeconds,
                isWhole: true
            });
            const [lock] = documents;
            return lock === undefined
                ? null
                : {
                      id,
                      at: new Date(String(lock['time'])).toISOString(),
                      hostname: String(lock['hostname'] ?? ''),
                      pid: Number(lock['pid'] ?? 0),
                      exclusive: lock['exclusive'] === true
                  };
        };
        // A lock that went meanwhile is none.
        const locks = await Promise.all(ids.slice(0, mostLocks).map((id) => read(id).catch(() => null)));
        return locks.filter((lock) => lock !== null);
    }

    /** What plans recorded of snapshots, by their ids. */
    async records(): Promise<ReadonlyMap<string, SnapshotRecord>> {
        const runs = await this.#ctx.db.read((em) =>
            em.find(RunEntity, { snapshotId: { $ne: null } }, { fields: ['snapshotId', 'sources'] })
        );
        return new Map(
            runs.map(({ snapshotId, sources }) => {
                const results = JSON.parse(sources) as readonly SourceResult[];
                const record = {
                    sources: results.filter(({ state }) => state === 'succeeded').map(({ source }) => source),
                    bytes: results.reduce((sum, { bytes }) => sum + bytes, 0)
                };
                return [snapshotId ?? '', record];
            })
        );
    }

    /** What differs between two snapshots, at most 10,000 paths. */
    async diff(
        row: RepositoryRow,
        from: Snapshot,
        to: Snapshot,
        signal: AbortSignal
    ): Promise<readonly Difference[]> {
        const found: Difference[] = [];
        await this.#restic.run(await this.#repositories.target(row), ['diff', '--no-lock', from.id, to.id], {
            signal,
            timeoutSeconds: answerSeconds,
            keepNone: true,
            onDocument({ message_type: type, path, modifier }) {
                if (type === 'change' && found.length < mostDifferences) {
                    const sign = String(modifier);
                    const change = sign === '+' ? 'added' : sign === '-' ? 'removed' : 'changed';
                    found.push({ path: String(path), change });
                }
            }
        });
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
        const { documents } = await this.#restic.run(target, ['ls', '--no-lock', id, path], {
            timeoutSeconds: answerSeconds
        });
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
        const { documents } = await this.#restic.run(
            target,
            ['find', '--no-lock', `--snapshot=${id}`, '--', pattern],
            { timeoutSeconds: answerSeconds }
        );
        return documents
            .flatMap(({ matches }) => (matches ?? []) as readonly Document[])
            .slice(0, mostFound)
            .map((match) => entryOf({ ...match, name: String(match['path']).split('/').at(-1) }));
    }

    /** What the snapshot says of itself; null for one that this plugin did not make. */
    async note(
        row: RepositoryRow,
        { id, paths }: Snapshot,
        signal: AbortSignal
    ): Promise<SnapshotNote | null> {
        const path = notePathIn(paths);
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

    /** How much lies at paths of a snapshot, and below them. */
    async below(
        row: RepositoryRow,
        { id }: Snapshot,
        places: readonly string[],
        signal: AbortSignal
    ): Promise<{ readonly files: number; readonly bytes: number; readonly paths: number }> {
        const found = { files: 0, bytes: 0, paths: 0 };
        if (places.length === 0) {
            return found;
        }
        const target = await this.#repositories.target(row);
        await this.#restic.run(target, ['ls', '--no-lock', '--recursive', id, ...places], {
            signal,
            keepNone: true,
            onDocument({ struct_type: kind, type, size, path: at }) {
                if (
                    kind === 'node' &&
                    places.some((path) => at === path || String(at).startsWith(`${path}/`))
                ) {
                    found.paths += 1;
                    found.files += type === 'file' ? 1 : 0;
                    found.bytes += Number(size ?? 0);
                }
            }
        });
        return found;
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
        await this.#restic.run(target, ['ls', '--no-lock', snapshotId], {
            signal,
            keepNone: true,
            onDocument({ type, path, size }) {
                const at = String(path);
                const owner = staged.find(({ paths }) =>
                    paths.some((each) => at === each || at.startsWith(`${each}/`))
                );
                const count = owner === undefined ? undefined : counts.get(owner);
                if (type === 'file' && count !== undefined) {
                    count.files += 1;
                    count.bytes += Number(size ?? 0);
                }
            }
        });
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
        const changed = (await this.list(row)).find(({ time }) => time === snapshot.time) ?? snapshot;
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(RunEntity, { snapshotId: snapshot.id }, { snapshotId: changed.id })
        );
        return changed;
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
        this.#readings.delete(repositoryId);
    }
}
