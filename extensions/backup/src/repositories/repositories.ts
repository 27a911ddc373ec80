/** Repositories: made or opened, changed, checked, and forgotten without losing what is in them. */
import { randomBytes } from 'node:crypto';

import { errors, isFailure, KeyedMutex, requireVersion } from '@portico/sdk';

import { PlanEntity, RepositoryEntity, type RepositoryRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { findRepositories } from '../queries.ts';
import type { Restic } from '../restic/restic.ts';
import type { Ctx } from '../settings.ts';
import type { Connection, Secrets } from '../targets/connection.ts';
import type { Rclone } from '../targets/rclone.ts';
import type { Target } from '../targets/target.ts';
import type { Targets } from '../targets/targets.ts';
import { checkFields, checkPlace, connectionOf, type RepositoryInput, secretsOf } from './input.ts';
import { requireEmpty, requireFolder } from './local-folder.ts';
import { Marks } from './marks.ts';
import { removeStaleLocks } from './stale-locks.ts';
import {
    connectionIn,
    namesOf,
    type RepositoryStatus,
    stateOfFailure,
    statusOf,
    uniquePlace
} from './stored.ts';

/** What can be changed of a repository, as it was sent. */
export type RepositoryChange = Readonly<Record<string, unknown>> & {
    readonly name?: string | undefined;
    readonly version?: number | undefined;
    readonly appendOnly?: boolean | undefined;
    readonly uploadKiBps?: number | null | undefined;
    readonly downloadKiBps?: number | null | undefined;
};

const initSeconds = 120;
const mostRepositories = 50;

/** All repositories. What writes to one runs alone; reads go on. */
export class Repositories {
    readonly #ctx: Ctx;
    readonly #restic: Restic;
    readonly #targets: Targets;
    readonly #rclone: Rclone;
    readonly #writers = new KeyedMutex();
    readonly #creations = new KeyedMutex();
    readonly #busy = new Map<number, number>();
    readonly #marks: Marks;

    constructor(ctx: Ctx, restic: Restic, targets: Targets, rclone: Rclone) {
        this.#ctx = ctx;
        this.#restic = restic;
        this.#targets = targets;
        this.#rclone = rclone;
        this.#marks = new Marks(ctx.log, (id, isUsed) => this.#know(id, { isUsed }));
    }

    list(): Promise<readonly RepositoryRow[]> {
        return this.#ctx.db.read((em) => findRepositories(em, {}));
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<RepositoryRow> {
        const [row] = await this.#ctx.db.read((em) => findRepositories(em, { id }));
        if (row === undefined) {
            throw errors.notFound('There is no repository of that id');
        }
        return row;
    }

    /** What restic needs to open it. Resolves its name, so call it right before each use. */
    async target(row: RepositoryRow): Promise<Target> {
        return this.#targets.build(connectionIn(row), await this.secrets(row), row);
    }

    /** What restic needs for a copy from one repository to another. */
    async pair(
        from: RepositoryRow,
        to: RepositoryRow
    ): Promise<{ readonly from: Target; readonly to: Target }> {
        return {
            from: await this.#targets.build(
                connectionIn(from),
                await this.secrets(from),
                from,
                connectionIn(to)
            ),
            to: await this.target(to)
        };
    }

    /** What opens it. */
    async secrets({ password }: RepositoryRow): Promise<Secrets> {
        const opened = await this.#ctx.secrets.open(password);
        return opened.startsWith('{') ? (JSON.parse(opened) as Secrets) : { password: opened };
    }

    /** Checks an input without asking the target. @throws VALIDATION_FAILED 40001; TOOL_MISSING 50302 for rclone */
    async draft(
        input: RepositoryInput
    ): Promise<{ readonly connection: Connection; readonly secrets: Secrets }> {
        checkFields(input.type, input);
        if (input.type === 'local') {
            checkPlace(input.path ?? '', 'path');
        }
        const obscured =
            input.remote === undefined ? undefined : await this.#rclone.passwordsOf(input.remote);
        return {
            connection: connectionOf(input, obscured),
            secrets: {
                ...secretsOf(input),
                password: input.password ?? randomBytes(24).toString('base64url')
            }
        };
    }

    /** Makes a new repository, or opens an existing one, and stores how. @throws the plugin's errors; CONFLICT 40900 */
    async create(input: RepositoryInput, signal: AbortSignal): Promise<RepositoryRow> {
        const { connection, secrets } = await this.draft(input);
        const place = uniquePlace(connection, secrets);
        return this.#creations.run(place, async () => {
            const rows = await this.list();
            if (rows.some((row) => row.path === place)) {
                throw errors.conflict('path');
            }
            if (rows.length >= mostRepositories) {
                throw errors.inUse(`${mostRepositories} repositories: forget one first`);
            }
            const target = await this.#targets.build(connection, secrets, {
                uploadKiBps: input.uploadKiBps ?? null,
                downloadKiBps: input.downloadKiBps ?? null
            });
            const isLocal = connection.type === 'local';
            if (input.mode === 'create') {
                await (isLocal ? requireEmpty(this.#ctx, place) : this.#requireNone(target, signal));
                await this.#restic.run(target, ['init'], { signal, timeoutSeconds: initSeconds });
            } else {
                await (isLocal ? requireFolder(this.#ctx, place) : null);
                await this.#open(target, signal);
            }
            return this.insert(input, connection, secrets);
        });
    }

    /** Stores a repository without asking its target. */
    async insert(
        {
            name,
            appendOnly,
            uploadKiBps = null,
            downloadKiBps = null
        }: Pick<RepositoryInput, 'name' | 'appendOnly' | 'uploadKiBps' | 'downloadKiBps'>,
        connection: Connection,
        secrets: Secrets
    ): Promise<RepositoryRow> {
        const sealed = await this.#seal(secrets);
        const id = await this.#ctx.db.write((em) =>
            em.insert(RepositoryEntity, {
                version: 1,
                name,
                path: uniquePlace(connection, secrets),
                appendOnly,
                password: sealed,
                connection: JSON.stringify(connection),
                secretsSet: JSON.stringify(namesOf(secrets)),
                uploadKiBps,
                downloadKiBps,
                status: '{}',
                lastCheck: null,
                createdAt: Date.now()
            })
        );
        return this.get(id);
    }

    /** Stores a repository as it was elsewhere; one at the same place is changed. */
    async adopt(given: {
        readonly name: string;
        readonly connection: Connection;
        readonly secrets: Secrets;
        readonly appendOnly: boolean;
        readonly uploadKiBps: number | null;
        readonly downloadKiBps: number | null;
    }): Promise<void> {
        const { name, connection, secrets, appendOnly, uploadKiBps, downloadKiBps } = given;
        const known = (await this.list()).find(({ path }) => path === uniquePlace(connection, secrets));
        if (known === undefined) {
            await this.insert(given, connection, secrets);
            return;
        }
        const change = { name, appendOnly, uploadKiBps, downloadKiBps };
        const password = await this.#seal(secrets);
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(
                RepositoryEntity,
                { id: known.id },
                {
                    ...change,
                    password,
                    connection: JSON.stringify(connection),
                    secretsSet: JSON.stringify(namesOf(secrets)),
                    version: known.version + 1
                }
            )
        );
    }

    /** Whether the target answers, and whether the password opens what is there. */
    async test(
        input: RepositoryInput,
        signal: AbortSignal
    ): Promise<{ readonly reachable: boolean; readonly opens: boolean; readonly message: string | null }> {
        const { connection, secrets } = await this.draft(input);
        try {
            await this.#open(await this.#targets.build(connection, secrets), signal);
            return { reachable: true, opens: true, message: null };
        } catch (error) {
            signal.throwIfAborted();
            const reason = isFailure(error) ? error.reason : '';
            if (reason === 'TOOL_MISSING') {
                throw error;
            }
            const reachable = ['PASSWORD_WRONG', 'NOT_A_REPOSITORY', 'LOCKED'].includes(reason);
            return { reachable, opens: false, message: (error as Error).message };
        }
    }

    /** Changes names, limits and what opens it; the place stays. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async update(id: number, change: RepositoryChange, ifMatch: string | null): Promise<RepositoryRow> {
        const row = await this.get(id);
        const [before, opened] = [connectionIn(row), await this.secrets(row)];
        const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
        const options = (given['remote'] as { options?: Record<string, string> } | undefined)?.options;
        const obscured =
            options === undefined
                ? before.obscured
                : await this.#rclone.passwordsOf({ type: before.remoteType ?? '', options });
        const { type: _type, ...changed } = connectionOf({ ...given, remote: undefined }, obscured);
        const connection: Connection = { ...before, ...changed, obscured };
        const secrets: Secrets = { ...opened, ...secretsOf(given) };
        const isSwap = given['privateKey'] !== undefined || given['loginPassword'] !== undefined;
        const kept =
            before.type === 'sftp' && isSwap
                ? { ...secrets, privateKey: undefined, loginPassword: undefined, ...secretsOf(given) }
                : secrets;
        checkFields(before.type, {
            ...connection,
            ...kept,
            ...(before.type === 'rclone' ? { remote: kept.options } : {})
        });
        const sealed = await this.#seal(kept);
        await this.#ctx.db.write(async (em) => {
            const [stored] = await findRepositories(em, { id });
            if (stored === undefined) {
                throw errors.notFound('There is no repository of that id');
            }
            requireVersion(stored, ifMatch, change.version);
            Object.assign(stored, {
                name: change.name ?? stored.name,
                appendOnly: change.appendOnly ?? stored.appendOnly,
                uploadKiBps: change.uploadKiBps === undefined ? stored.uploadKiBps : change.uploadKiBps,
                downloadKiBps:
                    change.downloadKiBps === undefined ? stored.downloadKiBps : change.downloadKiBps,
                connection: JSON.stringify(connection),
                password: sealed,
                secretsSet: JSON.stringify(namesOf(kept)),
                version: stored.version + 1
            });
        });
        return this.get(id);
    }

    /** Forgets it; its files stay. @throws IN_USE 40901 while a plan names it */
    async remove(id: number): Promise<void> {
        await this.get(id);
        this.requireFree(id);
        await this.#ctx.db.write(async (em) => {
            const plans = (await em.find(PlanEntity, {})).filter(
                (plan) => plan.repositoryId === id || (JSON.parse(plan.copyTo) as number[]).includes(id)
            );
            if (plans.length > 0) {
                throw errors.inUse(plans.map(({ name }) => name));
            }
            await em.nativeDelete(RepositoryEntity, { id });
        });
    }

    /** Runs work that writes to the repository, after all earlier such work. */
    writing<T>(id: number, work: () => Promise<T>): Promise<T> {
        return this.#alone(id, () => this.using(id, work));
    }

    async #alone<T>(id: number, work: () => Promise<T>): Promise<T> {
        this.#busy.set(id, (this.#busy.get(id) ?? 0) + 1);
        try {
            return await this.#writers.run(String(id), work);
        } finally {
            this.#busy.set(id, (this.#busy.get(id) ?? 1) - 1);
        }
    }

    /** Runs work while which restic locks the repository. It is marked meanwhile, so that the next start finds what a killed panel left locked. */
    using<T>(id: number, work: () => Promise<T>): Promise<T> {
        return this.#marks.during(id, work);
    }

    /** Removes the locks that a killed panel left: only those whose program has ended. A repository that does not answer keeps nothing from its start, and is tried again at the next one. */
    async recover(): Promise<void> {
        for (const row of (await this.list()).filter((each) => statusOf(each).isUsed === true)) {
            void this.#alone(row.id, () =>
                this.#marks.recover(row.id, async () =>
                    removeStaleLocks(this.#restic, await this.target(row), this.#ctx.signal)
                )
            ).catch((error: unknown) =>
                this.#ctx.log.warn('A stale lock could not be removed', {
                    repository: row.id,
                    error: String(error)
                })
            );
        }
    }

    /** @throws IN_USE 40901 while other work writes to it */
    requireFree(id: number): void {
        if ((this.#busy.get(id) ?? 0) > 0) {
            throw errors.inUse('a run, a check or a clean-up of this repository');
        }
    }

    /** @throws APPEND_ONLY 40950 */
    requireRemovable({ appendOnly }: RepositoryRow): void {
        if (appendOnly) {
            throw fail.APPEND_ONLY();
        }
    }

    /** Remembers how the repository was seen. @param seen - a failure, or null with what is known of it */
    async see(
        id: number,
        seen: unknown,
        known: Partial<Pick<RepositoryStatus, 'snapshots' | 'storedBytes' | 'readAt'>> = {},
        state = seen === null ? 'ready' : isFailure(seen) ? stateOfFailure[seen.reason] : undefined
    ): Promise<void> {
        if (state === undefined) {
            return; // it says nothing about the repository
        }
        await this.#know(id, { ...known, state, message: seen === null ? null : (seen as Error).message });
    }

    async #know(id: number, known: Partial<RepositoryStatus>): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            const [row] = await findRepositories(em, { id });
            if (row !== undefined) {
                row.status = JSON.stringify({ ...statusOf(row), ...known });
            }
        });
    }

    /** Stores a new password; the old one is forgotten. */
    async storePassword(row: RepositoryRow, password: string): Promise<void> {
        const sealed = await this.#seal({ ...(await this.secrets(row)), password });
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(RepositoryEntity, { id: row.id }, { password: sealed })
        );
    }

    #seal(secrets: Secrets): Promise<string> {
        return this.#ctx.secrets.seal(JSON.stringify(secrets));
    }

    async #open(target: Target, signal: AbortSignal): Promise<void> {
        await this.#restic.run(target, ['cat', 'config', '--no-lock'], {
            signal,
            timeoutSeconds: initSeconds
        });
    }

    /** Some targets would let `init` make a second repository over a first one whose password is another. */
    async #requireNone(target: Target, signal: AbortSignal): Promise<void> {
        try {
            await this.#open(target, signal);
        } catch (error) {
            const reason = isFailure(error) ? error.reason : '';
            if (reason === 'NOT_A_REPOSITORY') {
                return;
            }
            if (reason !== 'PASSWORD_WRONG') {
                throw error;
            }
        }
        throw errors.conflict('path');
    }
}
