/** What of the engine is used for nothing: told, and removed. Never what belongs to a stack or to a plugin. */
import { createHash } from 'node:crypto';

import { type Actor, errors, isFailure, type TaskView } from '@portico/sdk';

import type { Making } from '../containers/making.ts';
import type { EngineNetwork, Labels, ListedImage } from '../engine/documents.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import { nameOf } from '../stacks/planner.ts';
import type { StackStore } from '../stacks/revisions.ts';
import { emptyImage } from '../volumes/archives.ts';

/** What can be pruned. */
export const pruneKinds = ['containers', 'images', 'networks', 'volumes', 'buildCache'] as const;
/** One of {@link pruneKinds}. */
export type PruneKind = (typeof pruneKinds)[number];

/** Which unused objects of the engine are removed, and from which age on. */
export interface PruneInput {
    readonly what: readonly PruneKind[];
    /** Also images with a name, and volumes with a name. */
    readonly all: boolean;
    readonly olderThanHours: number;
}

/** Something that is used for nothing. */
export interface Prunable {
    readonly kind: PruneKind;
    readonly id: string;
    readonly name: string;
    readonly bytes: number;
}

/** What a prune would remove, as a dry run shows it. */
export interface Found {
    readonly items: readonly Prunable[];
    /** Of all of them. */
    readonly bytes: number;
    /** Names this list: a prune that sends it removes exactly these. */
    readonly list: string;
}

/** How much of a kind there is. */
export interface Usage {
    readonly count: number;
    readonly bytes: number;
    /** Of what no container uses. */
    readonly reclaimableBytes: number;
}

interface DiskUsage {
    readonly Images?: readonly (ListedImage & { readonly Containers?: number })[] | null;
    readonly Containers?:
        readonly { readonly Id: string; readonly SizeRw?: number; readonly State?: string }[] | null;
    readonly Volumes?:
        | readonly {
              readonly Name: string;
              readonly UsageData?: { readonly Size: number; readonly RefCount: number } | null;
          }[]
        | null;
    readonly BuildCache?:
        | readonly {
              readonly ID: string;
              readonly Size: number;
              readonly InUse: boolean;
              readonly CreatedAt?: string;
              readonly LastUsedAt?: string | null;
          }[]
        | null;
}

const slowMs = 120_000;

/** Tells and removes what is used for nothing. */
export class Prune {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #making: Making;
    readonly #store: StackStore;

    constructor(
        ctx: Ctx,
        parts: {
            readonly engine: Engine;
            readonly inventory: Inventory;
            readonly making: Making;
            readonly store: StackStore;
        }
    ) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#inventory = parts.inventory;
        this.#making = parts.making;
        this.#store = parts.store;
    }

    /** How much of each kind there is. */
    async usage(): Promise<Record<'images' | 'containers' | 'volumes' | 'buildCache', Usage>> {
        const [disk, listed] = await Promise.all([this.#disk(), this.#inventory.list()]);
        const used = new Set(listed.map(({ ImageID: id }) => id));
        const running = new Set(listed.filter(({ State }) => State === 'running').map(({ Id }) => Id));
        return {
            images: sumOf((disk.Images ?? []).map(({ Id, Size }) => ({ bytes: Size, free: !used.has(Id) }))),
            containers: sumOf(
                (disk.Containers ?? []).map(({ Id, SizeRw = 0 }) => ({
                    bytes: SizeRw,
                    free: !running.has(Id)
                }))
            ),
            volumes: sumOf(
                (disk.Volumes ?? []).map(({ UsageData: data }) => ({
                    bytes: Math.max(0, data?.Size ?? 0),
                    free: (data?.RefCount ?? 1) === 0
                }))
            ),
            buildCache: sumOf(
                (disk.BuildCache ?? []).map(({ Size, InUse }) => ({ bytes: Size, free: !InUse }))
            )
        };
    }

    /** What a prune would remove now. */
    async find(input: PruneInput): Promise<Found> {
        const disk = await this.#disk();
        const finders: Readonly<Record<PruneKind, () => Promise<readonly Prunable[]>>> = {
            containers: () => this.#containers(input, disk),
            images: () => this.#images(input),
            networks: () => this.#networks(input),
            volumes: () => this.#volumes(input, disk),
            buildCache: async () =>
                (disk.BuildCache ?? [])
                    .filter(
                        ({ InUse, CreatedAt: created = '', LastUsedAt: used }) =>
                            !InUse && isOld(Date.parse(used ?? created), input)
                    )
                    .map(({ ID: id, Size: bytes }) => ({ kind: 'buildCache', id, name: id, bytes }))
        };
        const found: Prunable[] = [];
        for (const kind of pruneKinds.filter((each) => input.what.includes(each))) {
            found.push(...(await finders[kind]()));
        }
        return { items: found, bytes: bytesOf(found), list: listOf(found) };
    }

    /**
     * Begins a task that removes what there is to remove now. What is used again meanwhile is left.
     *
     * @param seen - the list that a dry run with the same input showed: nothing else is removed
     * @throws VERSION_STALE 41200 with the list of now, when it is not the one that was seen
     */
    async begin(input: PruneInput, seen: string | undefined, actor: Actor): Promise<TaskView> {
        const { items, list } = await this.find(input);
        if (seen !== undefined && list !== seen) {
            throw errors.stale(list);
        }
        return this.#ctx.task(
            { kind: 'prune', title: 'Remove what is used for nothing', access: 'write', key: 'prune', actor },
            async (run) => {
                const removed: Prunable[] = [];
                for (const [index, item] of items.entries()) {
                    run.signal.throwIfAborted();
                    run.progress(index / items.length, `${item.kind}: ${item.name}`);
                    if (await this.#remove(item)) {
                        removed.push(item);
                    } else {
                        run.log(`${item.name} is in use`);
                    }
                }
                return { items: removed, bytes: bytesOf(removed), list };
            }
        );
    }

    /** Removes what nothing uses; false where something uses it by now. */
    async #remove({ kind, id }: Prunable): Promise<boolean> {
        try {
            if (kind === 'containers') {
                const { State: state } = await this.#inventory.container(id);
                if (state.Running || state.Paused || state.Restarting) {
                    throw errors.inUse('the container itself');
                }
                await this.#making.remove(id);
            } else if (kind === 'buildCache') {
                const filters = JSON.stringify({ id: [id] });
                await this.#engine.call('POST', '/build/prune', { query: { filters }, patienceMs: slowMs });
            } else {
                await this.#engine.call('DELETE', `/${kind}/${encodeURIComponent(id)}`, {
                    patienceMs: slowMs
                });
            }
            return true;
        } catch (error) {
            if (isFailure(error) && [40400, 40901, 42254].includes(error.code)) {
                return false;
            }
            throw error;
        }
    }

    async #containers(input: PruneInput, disk: DiskUsage): Promise<readonly Prunable[]> {
        const sizes = new Map((disk.Containers ?? []).map(({ Id, SizeRw = 0 }) => [Id, SizeRw]));
        return (await this.#inventory.list())
            .filter(
                ({ State, Labels: labels, Created: created }) =>
                    ['exited', 'dead', 'stopped'].includes(State) &&
                    !belongs(labels) &&
                    isOld(created * 1_000, input)
            )
            .map((each) => ({
                kind: 'containers',
                id: each.Id,
                name: nameOf(each),
                bytes: sizes.get(each.Id) ?? 0
            }));
    }

    /** Images that a revision of a stack could go back to stay: no registry may have them any more. */
    async #images(input: PruneInput): Promise<readonly Prunable[]> {
        const [images, listed, kept] = await Promise.all([
            this.#inventory.images(),
            this.#inventory.list(),
            this.#store.imageIds()
        ]);
        const used = new Set([...listed.map(({ ImageID: id }) => id), ...kept]);
        const named = (tags: readonly string[] | null): readonly string[] =>
            (tags ?? []).filter((tag) => !tag.startsWith('<none>'));
        return images
            .filter(
                ({ Id, RepoTags: tags, Labels: labels, Created: created }) =>
                    !used.has(Id) &&
                    (labels?.[labelOf.owner] ?? '') === '' &&
                    !named(tags).some((tag) => tag.endsWith(emptyImage)) &&
                    (input.all || named(tags).length === 0) &&
                    isOld(created * 1_000, input)
            )
            .map(({ Id: id, RepoTags: tags, Size: bytes }) => ({
                kind: 'images',
                id,
                name: named(tags)[0] ?? id,
                bytes
            }));
    }

    async #networks(input: PruneInput): Promise<readonly Prunable[]> {
        const used = new Set(
            (await this.#inventory.list()).flatMap(({ NetworkSettings: settings }) =>
                Object.keys(settings?.Networks ?? {})
            )
        );
        const isFree = ({ Name, Labels: labels, Created: created = '' }: EngineNetwork): boolean =>
            !['bridge', 'host', 'none', 'podman'].includes(Name) &&
            !used.has(Name) &&
            !belongs(labels) &&
            isOld(Date.parse(created), input);
        return [...(await this.#inventory.networks()).values()]
            .filter(isFree)
            .map(({ Id: id, Name: name }) => ({ kind: 'networks', id, name, bytes: 0 }));
    }

    /** A volume without a name is named by 64 digits. */
    async #volumes(input: PruneInput, disk: DiskUsage): Promise<readonly Prunable[]> {
        const sizes = new Map(
            (disk.Volumes ?? []).map(({ Name, UsageData }) => [Name, UsageData?.Size ?? 0])
        );
        const used = new Set(
            (await this.#inventory.list()).flatMap(({ Mounts: mounts }) =>
                (mounts ?? []).map(({ Name }) => Name)
            )
        );
        return [...(await this.#inventory.volumes()).values()]
            .filter(
                ({ Name, Labels: labels, CreatedAt: created = '' }) =>
                    !used.has(Name) &&
                    !belongs(labels) &&
                    (input.all || /^[0-9a-f]{64}$/.test(Name)) &&
                    isOld(Date.parse(created), input)
            )
            .map(({ Name: name }) => ({
                kind: 'volumes',
                id: name,
                name,
                bytes: Math.max(0, sizes.get(name) ?? 0)
            }));
    }

    #disk(): Promise<DiskUsage> {
        return this.#engine.call('GET', '/system/df', { patienceMs: slowMs });
    }
}

/** Whether it is of a stack, or a plugin made it. */
const belongs = (labels: Labels | null): boolean =>
    (labels?.[labelOf.project] ?? '') !== '' || (labels?.[labelOf.owner] ?? '') !== '';

/** A time that is not told counts as old. */
const isOld = (createdMs: number, { olderThanHours }: PruneInput): boolean =>
    Number.isNaN(createdMs) || Date.now() - createdMs >= olderThanHours * 3_600_000;

const bytesOf = (items: readonly Prunable[]): number => items.reduce((sum, { bytes }) => sum + bytes, 0);

/** Sizes change from one look to the next, and are no part of what was agreed to. */
function listOf(items: readonly Prunable[]): string {
    const ids = items.map(({ kind, id }) => `${kind} ${id}`).sort();
    return createHash('sha256').update(ids.join('\n')).digest('hex').slice(0, 32);
}

function sumOf(all: readonly { readonly bytes: number; readonly free: boolean }[]): Usage {
    const sum = (rows: typeof all): number => rows.reduce((total, { bytes }) => total + bytes, 0);
    return { count: all.length, bytes: sum(all), reclaimableBytes: sum(all.filter(({ free }) => free)) };
}
