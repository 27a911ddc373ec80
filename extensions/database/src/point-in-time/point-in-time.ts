/** Servers that keep their past: which times they can go back to, and new servers that are as they were then. */
import { type Actor, errors, type TaskView } from '@portico/sdk';

import type { Credentials } from '../credentials/credentials.ts';
import type { DataFolder } from '../dumps/folder.ts';
import type { BaseCopyRow, ManagedRow } from '../entities.ts';
import type { KindName } from '../kinds/kind.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Engine } from '../managed/engine.ts';
import type { Folders } from '../managed/folders.ts';
import type { Programs } from '../managed/kinds/programs.ts';
import type { ManagedServers } from '../managed/managed.ts';
import { type ManagedRows, type ManagedServer, ownUsername } from '../managed/rows.ts';
import type { Ctx } from '../settings.ts';
import type { Archiver } from './archiver.ts';
import type { BaseCopies } from './base-copies.ts';
import type { LogFiles } from './log-files.ts';

/** What a server can go back to. */
export interface Reach {
    readonly enabled: boolean;
    /** Null: there is nothing to go back to yet. */
    readonly from: Date | null;
    readonly to: Date | null;
    /** What its copies and its log take on the disk. */
    readonly bytes: number;
    /** What it waits for, or what is wrong; null where all is well. */
    readonly message: string | null;
}

/** What the past needs. */
export interface PointInTimeOptions {
    readonly ctx: Ctx;
    readonly folder: DataFolder;
    readonly folders: Folders;
    readonly managed: ManagedServers;
    readonly rows: ManagedRows;
    readonly programs: Programs;
    readonly engines: Readonly<Record<KindName, Engine>>;
    readonly archivers: Readonly<Record<KindName, Archiver>>;
    readonly copies: BaseCopies;
    readonly logs: LogFiles;
    readonly credentials: Credentials;
    readonly target: FindTarget;
}

const dayMs = 86_400_000;
/** A copy that failed is tried again so much later. */
const retryMs = 3_600_000;
const waitsForStart = 'It begins with the next start of the server';

/** Keeps the past of servers, and goes back to it. */
export class PointInTime {
    readonly #options: PointInTimeOptions;
    /** Servers that are copied now. */
    readonly #copying = new Set<number>();
    /** Servers that are restored from now: their past stays. */
    readonly #read = new Map<number, number>();
    /** Why the past of a server is not kept, and when a copy failed. */
    readonly #problems = new Map<number, { readonly text: string; readonly failedAt: number }>();

    constructor(options: PointInTimeOptions) {
        this.#options = options;
    }

    /** @throws TOOL_MISSING 50302, VALIDATION_FAILED 40001 where servers of this kind and release cannot keep their past */
    async check(
        kind: KindName,
        {
            runtime,
            release
        }: { readonly runtime: ManagedRow['runtime']; readonly release: string | undefined }
    ): Promise<void> {
        if (runtime === 'container') {
            const message = 'A server in a container keeps no past: run it natively';
            throw errors.invalid([{ path: 'pointInTime', message }]);
        }
        const newest = release ?? (await this.#options.engines[kind].releases())[0];
        if (newest !== undefined) {
            await this.#options.archivers[kind].check(newest);
        }
    }

    /** What is wrong, by server. */
    problems(): ReadonlyMap<number, string> {
        return new Map([...this.#problems].map(([id, { text }]) => [id, text]));
    }

    /** Has a server keep its past, or no longer, from its next start on. @throws NOT_MANAGED 40950 */
    async turn(id: number, isOn: boolean): Promise<void> {
        const { rows, managed, folders, programs } = this.#options;
        const found = await rows.get(id);
        const now = found.managed.pointInTime;
        if (isOn === (now === 'on')) {
            return;
        }
        if (!isOn) {
            await managed.set(id, { pointInTime: 'ending' });
            return;
        }
        // What the server wrote while it kept no log is missing in a former past.
        if (now === 'ending' && (await this.#logState(found))?.isKept !== true) {
            await this.#forget(id);
        }
        await folders.openArchive(id, await programs.account(found.server.kind));
        await managed.set(id, { pointInTime: 'on' });
    }

    /** What a server can go back to. @throws NOT_MANAGED 40950 */
    async reach(id: number): Promise<Reach> {
        const { rows, copies, logs } = this.#options;
        const found = await rows.get(id);
        const enabled = found.managed.pointInTime === 'on';
        const all = await copies.ready(id);
        const [oldest] = enabled ? all : [];
        return {
            enabled,
            from: oldest?.readyAt === undefined || oldest.readyAt === null ? null : new Date(oldest.readyAt),
            to: oldest === undefined ? null : await logs.end(found),
            bytes: all.reduce((sum, { bytes }) => sum + bytes, await logs.size(id)),
            message: this.#problems.get(id)?.text ?? (await this.#waitsFor(found, oldest))
        };
    }

    /** Begins a task that makes a new server with the databases and accounts of another one as they were. @throws VALIDATION_FAILED 40001, NOT_MANAGED 40950 */
    async restore(
        id: number,
        { at, name }: { readonly at: Date; readonly name: string },
        actor: Actor
    ): Promise<TaskView> {
        const { rows, managed, credentials } = this.#options;
        const found = await rows.get(id);
        const base = await this.#baseFor(found, at);
        const { kind } = found.server;
        const { release, memoryBytes, preset, options } = found.managed;
        return managed.create(
            {
                name,
                kind,
                runtime: 'native',
                release,
                port: undefined,
                memoryBytes,
                preset,
                options,
                dumpSchedule: null,
                pointInTime: false
            },
            actor,
            {
                fill: (made, password, signal) =>
                    this.#reading(id, () => this.#fill({ found, base, at }, made, password, signal)),
                finish: (made) => credentials.inherit(id, made)
            }
        );
    }

    /** Makes copies that are due, and removes what no time of the last days needs. */
    async keep(): Promise<void> {
        for (const { id, phase, pointInTime } of (await this.#options.rows.all()).values()) {
            if (phase !== 'ready' || pointInTime === 'off') {
                continue;
            }
            try {
                const found = await this.#options.rows.get(id);
                await (pointInTime === 'on' ? this.#keepOne(found) : this.#end(found));
            } catch (error) {
                this.#options.ctx.log.warn('The past of a server could not be looked after', {
                    server: id,
                    error
                });
            }
        }
    }

    /** Removes what a killed panel left half done. */
    async sweep(): Promise<void> {
        await this.#options.copies.sweep();
    }

    async #keepOne(found: ManagedServer): Promise<void> {
        const { copies, ctx } = this.#options;
        const { id } = found.server;
        const state = await this.#logState(found);
        if (state === null || !state.isKept || this.#copying.has(id)) {
            return;
        }
        const failedAt = this.#problems.get(id)?.failedAt ?? 0;
        if (state.problem !== null) {
            this.#problems.set(id, { text: state.problem, failedAt });
        } else if (failedAt === 0) {
            this.#problems.delete(id);
        }
        const age = Date.now() - ((await copies.ready(id)).at(-1)?.readyAt ?? 0);
        if (age > ctx.settings.pointInTimeDays * dayMs && Date.now() > failedAt + retryMs) {
            await this.#copy(found);
        } else {
            await this.#expire(found);
        }
    }

    /** Begins a task that copies all data of a server. */
    async #copy({ server, managed }: ManagedServer): Promise<void> {
        const { ctx, copies, programs, folder, folders, archivers, logs } = this.#options;
        const { id } = server;
        const { copy, label } = archivers[server.kind];
        this.#copying.add(id);
        const what = { kind: 'base-copy', title: `Copy ${server.name} to keep its past`, access: 'operate' };
        try {
            await ctx.task({ ...what, resource: `${id}` }, async ({ signal }) => {
                try {
                    const account = await programs.account(server.kind);
                    await folders.openArchive(id, account);
                    await folder.requireSpace(await folder.size(logs.data({ server, managed })));
                    const password = server.password === null ? '' : await ctx.secrets.open(server.password);
                    const run = await programs.tool(server.kind, password, signal);
                    await copies.make(id, account, async (path) => {
                        await copy(path, server, password, run);
                        const firstLog = label.firstLog(await logs.read(`${path}/${label.file}`));
                        return { bytes: await folder.size(logs.below(path)), firstLog };
                    });
                    this.#problems.delete(id);
                    await this.#expire({ server, managed });
                    return { serverId: id };
                } catch (error) {
                    await this.#failed(server, error);
                    throw error;
                } finally {
                    this.#copying.delete(id);
                }
            });
        } catch (error) {
            this.#copying.delete(id);
            throw error;
        }
    }

    async #failed({ id, name }: ManagedServer['server'], error: unknown): Promise<void> {
        const text = `a copy of its data failed: ${(error as Error).message}`.slice(0, 2_000);
        this.#problems.set(id, { text, failedAt: Date.now() });
        await this.#options.ctx.notify({
            event: 'base-copy-failed',
            severity: 'error',
            title: `The past of ${name} is not kept`.slice(0, 200),
            text,
            data: { server: id }
        });
    }

    /** The newest copy that is old enough stays, with all that came after it. */
    async #expire(found: ManagedServer): Promise<void> {
        const { copies, ctx, logs } = this.#options;
        const { id } = found.server;
        if (this.#read.has(id)) {
            return;
        }
        const end = Date.now() - ctx.settings.pointInTimeDays * dayMs;
        const all = await copies.ready(id);
        const kept = Math.max(
            0,
            all.findLastIndex(({ readyAt }) => readyAt !== null && readyAt <= end)
        );
        for (const row of all.slice(0, kept)) {
            await copies.remove(row);
        }
        const first = all[kept]?.firstLog;
        if (first !== undefined) {
            await logs.removeBefore(found, first);
        }
    }

    /** Ends a past that is no longer wanted, as soon as the server keeps no log. */
    async #end(found: ManagedServer): Promise<void> {
        const { id } = found.server;
        if ((await this.#logState(found))?.isKept === true || this.#read.has(id)) {
            return;
        }
        await this.#forget(id);
        await this.#options.managed.set(id, { pointInTime: 'off' });
    }

    async #forget(id: number): Promise<void> {
        await this.#options.folders.removeArchive(id);
        await this.#options.copies.forget(id);
        this.#problems.delete(id);
    }

    /** Null where the server does not run. */
    async #logState({ server }: ManagedServer): Promise<Awaited<ReturnType<Archiver['logState']>> | null> {
        const { programs, target, archivers } = this.#options;
        if ((await programs.info(server.id))?.state !== 'running') {
            return null;
        }
        const { admin } = await target(server.id);
        return admin.use(null, (session) => archivers[server.kind].logState(session));
    }

    async #waitsFor(found: ManagedServer, copy: BaseCopyRow | undefined): Promise<string | null> {
        const { pointInTime } = found.managed;
        if (pointInTime === 'off') {
            return null;
        }
        const isKept = (await this.#logState(found).catch(() => null))?.isKept === true;
        if (pointInTime === 'ending') {
            return isKept ? 'It ends with the next start of the server' : null;
        }
        return !isKept
            ? waitsForStart
            : copy === undefined
              ? 'The first copy of all data is being made'
              : null;
    }

    /** @throws VALIDATION_FAILED 40001 for a time that the past does not reach */
    async #baseFor(found: ManagedServer, at: Date): Promise<BaseCopyRow> {
        const { id } = found.server;
        const { enabled, from, to } = await this.reach(id);
        const problem =
            !enabled || from === null || to === null
                ? 'This server has no past to go back to'
                : at < from || at > to
                  ? `It can go back to times from ${from.toISOString()} to ${to.toISOString()}`
                  : null;
        const base = (await this.#options.copies.ready(id)).findLast(
            ({ readyAt }) => readyAt !== null && readyAt <= at.getTime()
        );
        if (problem !== null || base === undefined) {
            throw errors.invalid([{ path: 'at', message: problem ?? 'No copy is old enough' }]);
        }
        return base;
    }

    async #fill(
        { found, base, at }: { readonly found: ManagedServer; readonly base: BaseCopyRow; readonly at: Date },
        made: ManagedServer,
        password: string,
        signal: AbortSignal
    ): Promise<void> {
        const { programs, archivers, folder, logs } = this.#options;
        const { server } = found;
        const { restore, label } = archivers[server.kind];
        const path = logs.base(server.id, base.id);
        const files = await logs.since(found, base.firstLog);
        await folder.requireSpace(base.bytes + files.bytes);
        const account = await programs.account(server.kind);
        await restore(
            {
                base: path,
                label: await logs.read(`${path}/${label.file}`),
                logs: files.paths,
                sourceFolder: `${folder.path}/${logs.data(found)}`,
                at
            },
            {
                plan: programs.plan(made),
                login: { username: ownUsername, password },
                ...(account === null ? {} : { user: account.name }),
                run: await programs.tool(server.kind, password, signal),
                signal
            }
        );
    }

    async #reading<T>(id: number, work: () => Promise<T>): Promise<T> {
        this.#read.set(id, (this.#read.get(id) ?? 0) + 1);
        try {
            return await work();
        } finally {
            const left = (this.#read.get(id) ?? 1) - 1;
            if (left === 0) {
                this.#read.delete(id);
            } else {
                this.#read.set(id, left);
            }
        }
    }
}
