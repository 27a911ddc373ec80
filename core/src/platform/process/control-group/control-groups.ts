/** Makes control groups, and ends those that a process left behind when it was killed. */
import { readdir } from 'node:fs/promises';
import { threadId } from 'node:worker_threads';

import { identify } from '../process-identity.ts';
import { ControlGroup, type GroupLimits, GroupUnavailable } from './control-group.ts';
import { findHierarchies, type Hierarchy } from './hierarchy.ts';

/** Groups that end with this process: with its pid, the time of its start, its thread, and a number. */
const temporary = /^portico-(\d+)-(\d+)(?:-\d+)+$/;

/** The control groups of this machine. */
export class ControlGroups {
    static #last = 0;
    readonly #find: () => readonly Hierarchy[];
    /** Where the last group was made: finding that again costs more than the group. */
    #usual: Hierarchy | null = null;
    #swept: Promise<void> | null = null;

    /** @param find - finds where groups can be made; by default on this machine */
    constructor(find: () => readonly Hierarchy[] = findHierarchies) {
        this.#find = find;
    }

    /**
     * Makes a group with a name of its own, which another process removes if this one is killed. A group with a given name stays until
     * it is removed.
     *
     * @throws GroupUnavailable where this process may make no group with these limits
     */
    async create(limits: GroupLimits, name?: string): Promise<ControlGroup> {
        await (this.#swept ??= this.#sweep());
        const own = name ?? ControlGroups.#next();
        let refused = new GroupUnavailable('This machine has no control groups');
        for (const hierarchy of this.#candidates()) {
            try {
                const group = await ControlGroup.create(hierarchy, own, limits);
                this.#usual = hierarchy;
                return group;
            } catch (error) {
                if (!(error instanceof GroupUnavailable)) {
                    throw error;
                }
                refused = error;
            }
        }
        throw refused;
    }

    /**
     * Kills the processes of a group with a given name, whichever process made it, and removes it. A name that there is not is no error.
     *
     * @throws Error when processes do not end
     */
    async end(name: string): Promise<void> {
        for (const hierarchy of this.#find()) {
            const group = ControlGroup.of(hierarchy, name);
            await group.kill();
            await group.remove();
        }
    }

    *#candidates(): Iterable<Hierarchy> {
        if (this.#usual !== null) {
            yield this.#usual;
        }
        yield* this.#find();
    }

    /** Each thread counts for itself. */
    static #next(): string {
        ControlGroups.#last += 1;
        return ['portico', process.pid, identify(process.pid)?.ticks, threadId, ControlGroups.#last].join(
            '-'
        );
    }

    /** Ends the groups of processes that no longer run. */
    async #sweep(): Promise<void> {
        for (const { version, folders } of this.#find()) {
            const names = await Promise.all(
                Object.values(folders).map((folder) => readdir(folder).catch(() => []))
            );
            for (const name of new Set(names.flat())) {
                const [, pid = '', start = ''] = temporary.exec(name) ?? [];
                if (pid !== '' && String(identify(Number(pid))?.ticks) !== start) {
                    const group = ControlGroup.of({ version, folders }, name);
                    await group.kill().catch(() => undefined);
                    await group.remove();
                }
            }
        }
    }
}
