/** Brings the sources of a plan to where restic finds them, and says what is where. */
import type { BackupEntry, BackupItem } from '@portico/sdk';

import type { Source } from '../plans/input.ts';
import type { Plan } from '../plans/plans.ts';
import type { Ctx } from '../settings.ts';

/** How one source of a run went. */
export interface SourceResult {
    readonly source: Source;
    readonly state: 'succeeded' | 'failed';
    readonly message: string | null;
    readonly files: number;
    readonly bytes: number;
}

/** A source that lies ready. */
export interface StagedSource {
    readonly source: Source;
    /** Why it is not there; null when it is. */
    readonly message: string | null;
    /** Absolute paths that hold it. */
    readonly paths: readonly string[];
    readonly items: readonly BackupItem[];
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
/** What the panel itself answers as. */
export const panelName = 'panel';

/** The folder in which the sources of a plan are staged, relative to the plugin's own. */
export const stageOf = (planId: number): string => `scratch/plan-${planId}`;

/** Stages what plans name. */
export class Sources {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
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

    /** Empties the stage of a plan, and brings every source there. A source that fails does not keep the others. */
    async stage(plan: Plan, signal: AbortSignal): Promise<readonly StagedSource[]> {
        await this.clear(plan.id);
        const own = this.#ctx.files(this.#ctx.dataDir);
        const staged: StagedSource[] = [];
        for (const [index, source] of plan.sources.entries()) {
            signal.throwIfAborted();
            const folder = `${stageOf(plan.id)}/${index}`;
            await own.createFolder(folder, { mode: 0o700, parents: true });
            staged.push(
                source.type === 'folder'
                    ? await this.#folder(source)
                    : await this.#collected(source, `${this.#ctx.dataDir}/${folder}`, signal)
            );
        }
        const file = await own.open(`${stageOf(plan.id)}/${noteName}`, 'wx', 0o600);
        await file.writeFile(`${JSON.stringify(noteOf(plan, staged), null, 4)}\n`);
        await file.close();
        return staged;
    }

    /** Removes what is staged for a plan. */
    async clear(planId: number): Promise<void> {
        await this.remove(stageOf(planId));
    }

    /** Removes a folder below the plugin's own, if it is there. */
    async remove(path: string): Promise<void> {
        await this.#ctx
            .files(this.#ctx.dataDir)
            .remove(path, { recursive: true })
            .catch((error: unknown) => {
                if ((error as { reason?: unknown }).reason !== 'NOT_FOUND') {
                    throw error;
                }
            });
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
            const elsewhere = items.map(({ path }) => path).filter((path) => !path.startsWith(`${folder}/`));
            return { source, message: null, paths: [folder, ...elsewhere], items };
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
    }[];
}

function noteOf({ id, name }: Plan, staged: readonly StagedSource[]): SnapshotNote {
    return {
        format: 1,
        plan: { id, name },
        at: new Date().toISOString(),
        sources: staged
            .filter(({ message }) => message === null)
            .map(({ source, paths, items }) => ({ source, paths, items }))
    };
}
