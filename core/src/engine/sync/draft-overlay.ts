import type { Draft, HostRow, Plan } from '../change.ts';
import { withFragments } from '../fragments/fragments.ts';
import type { EngineSettings, SiteCertificate } from '../site.ts';

/** A map laid over another one, which is not touched. Each write can be undone. */
class OverlayMap<K, V> implements ReadonlyMap<K, V> {
    readonly #base: ReadonlyMap<K, V>;
    readonly #over = new Map<K, V | undefined>();
    readonly #undo: (() => void)[];
    #size: number;

    constructor(base: ReadonlyMap<K, V>, undo: (() => void)[]) {
        this.#base = base;
        this.#size = base.size;
        this.#undo = undo;
    }

    get size(): number {
        return this.#size;
    }

    get(key: K): V | undefined {
        return this.#over.has(key) ? this.#over.get(key) : this.#base.get(key);
    }

    has(key: K): boolean {
        return this.get(key) !== undefined;
    }

    /** `undefined` removes. */
    put(key: K, value: V | undefined): void {
        const before = this.get(key);
        const held = this.#over.has(key);
        this.#place(key, value, before);
        this.#undo.push(() => {
            this.#place(key, before, value);
            if (!held) {
                this.#over.delete(key);
            }
        });
    }

    *changes(): Generator<readonly [K, V | undefined]> {
        yield* this.#over;
    }

    *entries(): MapIterator<[K, V]> {
        for (const [key, value] of this.#base) {
            const now = this.#over.has(key) ? this.#over.get(key) : value;
            if (now !== undefined) {
                yield [key, now];
            }
        }

        for (const [key, value] of this.#over) {
            if (value !== undefined && !this.#base.has(key)) {
                yield [key, value];
            }
        }

        return undefined;
    }

    *keys(): MapIterator<K> {
        for (const [key] of this.entries()) {
            yield key;
        }

        return undefined;
    }

    *values(): MapIterator<V> {
        for (const [, value] of this.entries()) {
            yield value;
        }

        return undefined;
    }

    [Symbol.iterator](): MapIterator<[K, V]> {
        return this.entries();
    }

    forEach(work: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
        for (const [key, value] of this.entries()) {
            work(value, key, this);
        }
    }

    #place(key: K, value: V | undefined, before: V | undefined): void {
        this.#over.set(key, value);
        this.#size += (value === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    }
}

/** The committed rows. Only `advance` changes them, after a commit. */
export class Rows implements Draft {
    readonly #hosts = new Map<number, HostRow>();
    readonly #names = new Map<string, number>();
    readonly #certificates = new Map<number, SiteCertificate>();
    /** Last version of each deleted host, by id: a host that is restored counts on from there. */
    readonly #deletedVersions = new Map<number, number>();
    #settings: EngineSettings;
    #lastHostId: number;

    constructor(
        rows: readonly HostRow[],
        certificates: readonly SiteCertificate[],
        settings: EngineSettings,
        lastHostId: number
    ) {
        for (const row of rows) {
            this.#hosts.set(row.site.id, row);
            for (const name of namesOf(row)) {
                this.#names.set(name, row.site.id);
            }
        }

        for (const certificate of certificates) {
            this.#certificates.set(certificate.id, certificate);
        }

        this.#settings = settings;
        this.#lastHostId = rows.reduce((highest, row) => Math.max(highest, row.site.id), lastHostId);
    }

    get hosts(): ReadonlyMap<number, HostRow> {
        return this.#hosts;
    }

    get names(): ReadonlyMap<string, number> {
        return this.#names;
    }

    get certificates(): ReadonlyMap<number, SiteCertificate> {
        return this.#certificates;
    }

    get deletedVersions(): ReadonlyMap<number, number> {
        return this.#deletedVersions;
    }

    get settings(): EngineSettings {
        return this.#settings;
    }

    get lastHostId(): number {
        return this.#lastHostId;
    }

    hostOf(name: string): number | undefined {
        return this.#names.get(name);
    }

    /** Only shows the next id: it is not used up. */
    nextHostId(): number {
        return this.#lastHostId + 1;
    }

    /** Takes over what a draft changed, after its commit. The draft must not be used any more. */
    advance(draft: DraftOverlay): void {
        for (const [map, changes] of [
            [this.#hosts, draft.hosts.changes()],
            [this.#names, draft.names.changes()],
            [this.#certificates, draft.certificates.changes()],
            [this.#deletedVersions, draft.deletedVersions.changes()]
        ] as const) {
            merge(map as Map<unknown, unknown>, changes);
        }

        this.#settings = draft.settings;
        this.#lastHostId = draft.lastHostId;
    }
}

/** The rows as they would be with the changes that wait. Every step can be rolled back. */
export class DraftOverlay implements Draft {
    readonly hosts: OverlayMap<number, HostRow>;
    readonly names: OverlayMap<string, number>;
    readonly certificates: OverlayMap<number, SiteCertificate>;
    readonly deletedVersions: OverlayMap<number, number>;
    readonly #undo: (() => void)[] = [];
    #settings: EngineSettings;
    #lastHostId: number;

    constructor(rows: Rows) {
        this.hosts = new OverlayMap(rows.hosts, this.#undo);
        this.names = new OverlayMap(rows.names, this.#undo);
        this.certificates = new OverlayMap(rows.certificates, this.#undo);
        this.deletedVersions = new OverlayMap(rows.deletedVersions, this.#undo);
        this.#settings = rows.settings;
        this.#lastHostId = rows.lastHostId;
    }

    get settings(): EngineSettings {
        return this.#settings;
    }

    get lastHostId(): number {
        return this.#lastHostId;
    }

    hostOf(name: string): number | undefined {
        return this.names.get(name);
    }

    nextHostId(): number {
        this.#reach(this.#lastHostId + 1);
        return this.#lastHostId;
    }

    /** A mark for `rollBack`. */
    mark(): number {
        return this.#undo.length;
    }

    /** Undoes everything since the mark. */
    rollBack(mark: number): void {
        while (this.#undo.length > mark) {
            this.#undo.pop()?.();
        }
    }

    /**
     * Lays a plan over the rows.
     * @throws TypeError when a plan gives one name to two hosts, or puts a row under another id. Undo it with `rollBack`.
     */
    apply(plan: Plan): void {
        const hosts = plan.hosts ?? [];
        for (const { id } of hosts) {
            const before = this.hosts.get(id);
            for (const name of before === undefined ? [] : namesOf(before)) {
                this.names.put(name, undefined);
            }
        }

        for (const { id, row } of hosts) {
            this.#put(id, row);
        }

        for (const { id, certificate } of plan.certificates ?? []) {
            this.certificates.put(id, certificate ?? undefined);
        }

        const before = this.#settings;
        const after =
            plan.settings === before && plan.fragments === undefined
                ? before
                : withFragments(plan.settings ?? before, plan.fragments ?? before.fragments ?? {});
        if ((plan.settings !== undefined || plan.fragments !== undefined) && after !== before) {
            this.#settings = after;
            this.#undo.push(() => {
                this.#settings = before;
            });
        }
    }

    #reach(id: number): void {
        const before = this.#lastHostId;
        this.#lastHostId = id;
        this.#undo.push(() => {
            this.#lastHostId = before;
        });
    }

    #put(id: number, row: HostRow | null): void {
        const before = this.hosts.get(id);
        if (row === null) {
            this.hosts.put(id, undefined);
            if (before !== undefined) {
                this.deletedVersions.put(id, before.version);
            }

            return;
        }

        if (row.site.id !== id) {
            throw new TypeError(`A plan puts host ${row.site.id} in the place of host ${id}`);
        }

        // An import brings its own ids.
        this.#reach(Math.max(id, this.#lastHostId));

        for (const name of namesOf(row)) {
            const owner = this.names.get(name);
            if (owner !== undefined) {
                throw new TypeError(`A plan gives the name ${name} to host ${id}, but host ${owner} has it`);
            }

            this.names.put(name, id);
        }

        this.hosts.put(id, row);
    }
}

/** Every name of a host. */
export const namesOf = (row: HostRow): readonly string[] => [row.site.domain, ...row.site.aliases];

const merge = (map: Map<unknown, unknown>, changes: Iterable<readonly [unknown, unknown]>): void => {
    for (const [key, value] of changes) {
        if (value === undefined) {
            map.delete(key);
        } else {
            map.set(key, value);
        }
    }
};
