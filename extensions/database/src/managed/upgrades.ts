/**
 * Upgrades of servers that the panel runs, and the way back. The new release gets a data folder of its own. The row of the server says which
 * folder counts; it changes in one transaction, so a panel that is killed leaves either the old server or the new one.
 */
import { type Actor, errors, type TaskRun, type TaskView } from '@portico/sdk';

import type { DataFolder } from '../dumps/folder.ts';
import type { ManagedRow, PreviousRelease, ServerRow } from '../entities.ts';
import type { KindName } from '../kinds/kind.ts';
import type { Connections } from '../servers/connections.ts';
import type { Servers } from '../servers/servers.ts';
import type { Ctx } from '../settings.ts';
import type { Containers } from './containers/containers.ts';
import { ContainerUpgrades } from './containers/upgrades.ts';
import type { Engine, EngineUpgrade, UpgradeSide } from './engine.ts';
import { firstData, type Folders, type Passing } from './folders.ts';
import type { Programs } from './kinds/programs.ts';
import { type ManagedRows, type ManagedServer, ownUsername } from './rows.ts';
import type { ServerTasks } from './tasks.ts';

/** Names that one message shows at most. */
const mostNames = 10;
/** What an empty server takes. */
const emptyBytes = 128 * 1024 * 1024;

/** What upgrades of managed servers work with. */
export interface UpgradesOptions {
    readonly ctx: Ctx;
    readonly connections: Connections;
    readonly servers: Servers;
    readonly rows: ManagedRows;
    readonly programs: Programs;
    readonly containers: Containers;
    readonly folders: Folders;
    readonly folder: DataFolder;
    readonly engines: Readonly<Record<KindName, Engine>>;
    readonly tasks: ServerTasks;
}

/** Takes servers to newer releases and back. */
export class Upgrades {
    readonly #options: UpgradesOptions;
    readonly #contained: ContainerUpgrades;

    constructor(options: UpgradesOptions) {
        this.#options = options;
        this.#contained = new ContainerUpgrades(options);
    }

    /** Begins a task that takes a server to a newer release. @throws NOT_MANAGED 40950, VALIDATION_FAILED 40001, IN_USE 40901, TOOL_MISSING 50302 */
    async upgrade(id: number, release: string, actor: Actor): Promise<TaskView> {
        const { rows, tasks } = this.#options;
        const { server, managed } = await rows.get(id);
        const isContained = managed.runtime === 'container';
        const engine = isContained ? null : await this.#engineFor(server.kind, managed.release, release);
        if (isContained) {
            this.#contained.check(server.kind, managed.release, release);
        }
        if (managed.previous !== null) {
            throw errors.inUse('the data of its previous release: remove them first');
        }
        mustKeepNoPast(managed);
        const title = `Upgrade ${server.name} to ${release}`;
        return tasks.run(id, { kind: 'upgrade-server', title, access: 'write', actor }, async (run) => {
            await (engine === null
                ? this.#contained.upgrade(id, release, run)
                : this.#upgradeProgram(id, release, engine, run));
            return { serverId: id };
        });
    }

    async #upgradeProgram(id: number, release: string, engine: EngineUpgrade, run: TaskRun): Promise<void> {
        const { rows } = this.#options;
        const { managed } = await rows.get(id);
        run.progress(0.05, 'Looking whether it can begin');
        const previous = await this.#inspect(id);
        const next = { release, folder: `${firstData}-${release}` };
        await rows.update(id, { phase: 'upgrading' });
        try {
            await this.#fill(await rows.get(id), next, engine, run);
            await rows.update(id, { ...next, previous, phase: 'switching' });
            run.progress(0.9, 'Starting');
            await this.#serve(id, run.signal);
        } catch (error) {
            const { release: old, folder } = managed;
            await rows.update(id, { release: old, folder, previous: null, phase: 'upgrading' });
            await this.#undo(id);
            await this.#options.programs.waitUp(id, this.#options.ctx.signal);
            throw error;
        }
        await this.#finish(id);
    }

    /** Begins a task that takes a server back to its release and data of before the upgrade; what was written since is lost. @throws NOT_MANAGED 40950, NOT_FOUND 40400, TOOL_MISSING 50302, IN_USE 40901 */
    async rollBack(id: number, actor: Actor): Promise<TaskView> {
        const { rows, engines, tasks } = this.#options;
        const { server, managed } = await rows.get(id);
        const { previous } = managed;
        if (previous === null) {
            throw noPrevious();
        }
        mustKeepNoPast(managed);
        const engine = engines[server.kind];
        const isContained = managed.runtime === 'container';
        if (!isContained && !(await engine.releases()).includes(previous.release)) {
            throw errors.toolMissing(`release ${previous.release}`, `${engine.install}-${previous.release}`);
        }
        const title = `Take ${server.name} back to ${previous.release}`;
        return tasks.run(id, { kind: 'rollback-server', title, access: 'write', actor }, async (run) => {
            await (isContained
                ? this.#contained.rollBack(id, run)
                : this.#rollBackProgram(id, previous, run));
            return { serverId: id };
        });
    }

    async #rollBackProgram(id: number, previous: PreviousRelease, run: TaskRun): Promise<void> {
        const { rows, ctx } = this.#options;
        const { release, folder } = (await rows.get(id)).managed;
        await rows.update(id, {
            release: previous.release,
            folder: previous.folder,
            previous: null,
            phase: 'switching'
        });
        try {
            await this.#serve(id, run.signal);
        } catch (error) {
            await rows.update(id, { release, folder, previous, phase: 'switching' });
            await this.#serve(id, ctx.signal);
            await this.#finish(id);
            throw error;
        }
        await this.#finish(id);
    }

    /** Begins a task that removes the data of before the upgrade. @throws NOT_MANAGED 40950, NOT_FOUND 40400, IN_USE 40901 */
    async forget(id: number, actor: Actor): Promise<TaskView> {
        const { rows, tasks } = this.#options;
        const { server, managed } = await rows.get(id);
        const { previous, runtime } = managed;
        if (previous === null) {
            throw noPrevious();
        }
        const title = `Remove the previous data of ${server.name}`;
        return tasks.run(id, { kind: 'remove-previous', title, access: 'write', actor }, async () => {
            if (runtime === 'container') {
                await this.#contained.forget(id, previous);
            } else {
                await rows.update(id, { previous: null });
                await this.tidy(id);
            }
            return { serverId: id };
        });
    }

    /** Undoes or finishes what a killed panel left half done. Until the server answers, the start of the plugin does not wait. */
    async recover(id: number): Promise<void> {
        const { ctx, rows } = this.#options;
        const { managed } = await rows.get(id);
        const unanswered = (error: unknown): void =>
            ctx.log.warn('A server does not answer after its upgrade was cut', { server: id, error });
        if (managed.runtime === 'container') {
            void this.#contained.recover(id).catch(unanswered);
            return;
        }
        if (managed.phase === 'upgrading') {
            await this.#undo(id);
        } else {
            await this.#start(id);
        }
        void this.#complete(id).catch(unanswered);
    }

    /** Data that the row no longer names go only when the server answers: until then they may be all that there is. */
    async #complete(id: number): Promise<void> {
        const { ctx, rows, programs } = this.#options;
        await programs.waitUp(id, ctx.signal);
        if ((await rows.get(id)).managed.phase === 'switching') {
            await this.#finish(id);
        }
    }

    /** Removes folders that no server needs. */
    async tidy(id: number): Promise<void> {
        const { rows, folders } = this.#options;
        const { folder, previous, runtime } = (await rows.get(id)).managed;
        if (runtime === 'container') {
            return;
        }
        await folders.tidy(id, previous === null ? [folder] : [folder, previous.folder]);
    }

    async #engineFor(kind: KindName, current: string, release: string): Promise<EngineUpgrade> {
        const engine = this.#options.engines[kind];
        const wrong = (message: string): Error => errors.invalid([{ path: 'release', message }]);
        const all = await engine.releases();
        if (!all.includes(release)) {
            throw wrong(`${release} is not installed; there is ${all.join(', ') || 'none'}`);
        }
        if (!engine.upgrade.isNewer(release, current)) {
            throw wrong(`${release} is no newer release than ${current}, which it has`);
        }
        await engine.upgrade.check(release);
        return engine.upgrade;
    }

    /** What is to be kept of a server that answers, where all of it can be kept, and there is room for as much again. @throws SERVER_OFFLINE 50350, IN_USE 40901, STORAGE_FULL 50700 */
    async #inspect(id: number): Promise<PreviousRelease> {
        const { rows, servers, folders, folder } = this.#options;
        await servers.test(id);
        const { release, folder: data } = (await rows.get(id)).managed;
        const leading = await folder.waysOut(folders.data(id, data));
        if (leading.length > 0) {
            const names = leading.slice(0, mostNames);
            throw errors.inUse(names, `Both releases would have what lies elsewhere: ${names.join(', ')}`);
        }
        const bytes = await folder.size(folders.data(id, data));
        await folder.requireSpace(bytes + emptyBytes);
        return { release, folder: data, at: Date.now(), bytes };
    }

    /** Makes the new data folder, while only the panel reaches the servers. */
    async #fill(
        found: ManagedServer,
        next: Pick<ManagedRow, 'release' | 'folder'>,
        engine: EngineUpgrade,
        { signal, progress }: TaskRun
    ): Promise<void> {
        const { ctx, folders, programs } = this.#options;
        const { server, managed } = found;
        const { id, kind } = server;
        const password = server.password === null ? '' : await ctx.secrets.open(server.password);
        const after = { server, managed: { ...managed, ...next } };
        const sides = { old: this.#side(found, 'old', password), new: this.#side(after, 'new', password) };
        await folders.createPassing(id, next.folder, await programs.account(kind));
        await engine.fill({
            ...{ ctx, signal, progress, from: sides.old, to: sides.new },
            login: { username: ownUsername, password },
            run: await programs.tool(kind, password, signal),
            initialise: () => programs.initialise(after, password, signal, sides.new.plan),
            stop: () => programs.change(id, 'stop'),
            start: (which) =>
                programs.runAlone(which === 'old' ? found : after, which, sides[which].access, signal)
        });
        await programs.endNext(id);
    }

    #side(found: ManagedServer, which: Passing, password: string): UpgradeSide {
        const { programs, connections, engines } = this.#options;
        const { server } = found;
        const plan = programs.alone(found, which);
        const socket = engines[server.kind].socket(plan);
        const place: ServerRow = { ...server, host: null, socket, port: plan.port, tls: 'disable', ca: null };
        return { plan, socket, access: connections.as(place, { username: ownUsername, password }) };
    }

    /** Starts the server that its row names, and waits until it answers. */
    async #serve(id: number, signal: AbortSignal): Promise<void> {
        await this.#start(id);
        await this.#options.programs.waitUp(id, signal);
    }

    async #start(id: number): Promise<void> {
        const { rows, programs } = this.#options;
        const found = await rows.get(id);
        await programs.configure(found);
        await programs.put(found);
        await programs.change(id, 'start');
    }

    /** Takes away what there is of the new server, whose data may have filled the disk, and lets the old one serve again. */
    async #undo(id: number): Promise<void> {
        await this.#options.programs.endNext(id);
        await this.tidy(id);
        await this.#start(id);
        await this.#options.rows.update(id, { phase: 'ready' });
    }

    async #finish(id: number): Promise<void> {
        await this.tidy(id);
        await this.#options.rows.update(id, { phase: 'ready' });
    }
}

function noPrevious(): Error {
    return errors.notFound('There are no data of a previous release');
}

/** The log of one release means nothing to another one. @throws IN_USE 40901 */
function mustKeepNoPast({ pointInTime }: ManagedRow): void {
    if (pointInTime !== 'off') {
        throw errors.inUse('its past, which `pointInTime` keeps and which only the present release can read');
    }
}
