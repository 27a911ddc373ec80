/** Brings the sources of a plan to where restic finds them, and says what is where. */
import type { BackupEntry, BackupItem } from '@portico/sdk';

import type { Source } from '../plans/input.ts';
import type { Plan } from '../plans/plans.ts';
import type { Scratch } from '../scratch.ts';
import type { Ctx } from '../settings.ts';

/** How one source of a run went. */
export interface SourceResult {
    readonly source: Source;
    readonly state: 'succeeded' | 'failed';
    readonly message: string | null;
    readonly files: number;
    readonly bytes: number;
    /** Bytes that are new in the repository because of it. */
    readonly addedBytes: number;
}

/** A source that lies ready. */
export interface StagedSource {
    readonly source: Source;
    /** Why it is not there; null when it is. */
    readonly message: string | null;
    /** Absolute paths that hold it. */
    readonly paths: readonly string[];
    readonly items: readonly BackupItem[];
    /** Of the plugin that gave it. */
    readonly version?: string | undefined;
}

/** What a plugin could give. */
export interface Offer {
    readonly plugin: string;
    readonly ok: boolean;
    readonly reason?: string;
    readonly items: readonly BackupEntry[];
}

/** Name of the file in each snapshot that says what is where. */
export const noteName = 'portico-backup.json';
/** Where that file lies, by the paths of a snapshot; undefined for one that this plugin did not make. */
export const notePathIn = (paths: readonly string[]): string | undefined =>
    paths.find((path) => path.endsWith(`/${noteName}`));
/** What the panel itself answers as. */
export const panelName = 'panel';

/** The folder in the scratch folder in which the sources of a plan are staged. */
const stageOf = (planId: number): string => `plan-${planId}`;

/** Stages what plans name. */
export class Sources {
    readonly #ctx: Ctx;
    readonly #scratch: Scratch;

    constructor(ctx: Ctx, scratch: Scratch) {
        this.#ctx = ctx;
        this.#scratch = scratch;
    }

    /** What panel and plugins could give now. */
    async list(): Promise<readonly Offer[]> {
        const offers: Offer[] = [];
        for await (const outcome of this.#ctx.hooks.collect('backup.list', () => ({}))) {
            const { plugin } = outcome;
            offers.push(
                outcome.ok
                    ? { plugin, ok: true, items: outcome.result ?? [] }
                    : { plugin, ok: false, reason: outcome.message, items: [] }
            );
        }
        return offers;
    }

    /** The note that says what is where in the snapshot of a plan. Absolute. */
    notePath(planId: number): string {
        return `${this.#scratch.folder}/${stageOf(planId)}/${noteName}`;
    }

    async noteBytes(planId: number): Promise<number> {
        return (await this.#scratch.files.stat(`${stageOf(planId)}/${noteName}`)).size;
    }

    /**
     * Empties the stage of a plan, and brings every source there. A source that fails does not keep the others.
     *
     * @throws STORAGE_FULL 50700 when what panel and plugins would give does not fit
     */
    async stage(plan: Plan, signal: AbortSignal): Promise<readonly StagedSource[]> {
        const stage = await this.#scratch.make(stageOf(plan.id));
        await this.#scratch.requireRoom(await this.#expected(plan));
        const staged: StagedSource[] = [];
        for (const [index, source] of plan.sources.entries()) {
            signal.throwIfAborted();
            if (source.type === 'folder') {
                staged.push(await this.#folder(source));
            } else {
                await this.#scratch.files.createFolder(`${stageOf(plan.id)}/${index}`, { mode: 0o700 });
                staged.push(await this.#collected(source, `${stage}/${index}`, signal));
            }
        }
        await using file = await this.#scratch.files.open(`${stageOf(plan.id)}/${noteName}`, 'wx', 0o600);
        await file.writeFile(`${JSON.stringify(noteOf(plan, staged), null, 4)}\n`);
        return staged;
    }

    /** Removes what is staged for a plan. */
    clear(planId: number): Promise<void> {
        return this.#scratch.remove(stageOf(planId));
    }

    /** Bytes that the panel and plugins say they would give. */
    async #expected({ sources }: Plan): Promise<number> {
        const collected = sources.filter(({ type }) => type !== 'folder');
        if (collected.length === 0) {
            return 0;
        }
        const offers = await this.list();
        const items = collected.flatMap(({ type, plugin, items: only }) =>
            (
                offers.find((offer) => offer.plugin === (type === 'panel' ? panelName : plugin))?.items ?? []
            ).filter(({ name }) => only?.includes(name) ?? true)
        );
        return items.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
    }

    async #folder(source: Source): Promise<StagedSource> {
        const path = source.path ?? '';
        try {
            const { type } = await this.#ctx.files('/').stat(path.slice(1));
            return type === 'folder'
                ? { source, message: null, paths: [path], items: [] }
                : { source, message: `${path} is not a folder`, paths: [], items: [] };
        } catch (error) {
            return { source, message: `${path}: ${(error as Error).message}`, paths: [], items: [] };
        }
    }

    async #collected(source: Source, folder: string, signal: AbortSignal): Promise<StagedSource> {
        const plugin = source.type === 'panel' ? panelName : (source.plugin ?? '');
        const payload = source.items === undefined ? { folder } : { folder, only: source.items };
        for await (const outcome of this.#ctx.hooks.collect('backup.collect', () => payload, {
            only: [plugin],
            signal
        })) {
            if (!outcome.ok) {
                return { source, message: outcome.message, paths: [], items: [] };
            }
            const items = outcome.result ?? [];
            const lacking = source.items?.filter((name) => !items.some((item) => item.name === name)) ?? [];
            if (lacking.length > 0) {
                return {
                    source,
                    message: `${plugin} did not give ${lacking.join(', ')}`,
                    paths: [],
                    items: []
                };
            }
            const elsewhere = items.map(({ path }) => path).filter((path) => !path.startsWith(`${folder}/`));
            return { source, message: null, paths: [folder, ...elsewhere], items, version: outcome.version };
        }
        return { source, message: `The plugin ${plugin} gives nothing to backups`, paths: [], items: [] };
    }
}

/** What a snapshot holds, for another panel that has only the repository. */
export interface SnapshotNote {
    readonly format: 1;
    readonly plan: { readonly id: number; readonly name: string };
    readonly at: string;
    readonly sources: readonly {
        readonly source: Source;
        readonly paths: readonly string[];
        readonly items: readonly BackupItem[];
        readonly version?: string | undefined;
    }[];
}

function noteOf({ id, name }: Plan, staged: readonly StagedSource[]): SnapshotNote {
    return {
        format: 1,
        plan: { id, name },
        at: new Date().toISOString(),
        sources: staged
            .filter(({ message }) => message === null)
            .map(({ source, paths, items, version }) => ({ source, paths, items, version }))
    };
}
