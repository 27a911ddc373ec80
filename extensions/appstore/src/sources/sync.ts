/** Syncs: a source is asked for what it offers now, on schedule and by hand. */
import { type Actor, errors, isFailure, type TaskView } from '@portico/sdk';

import type { SourceRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { FileStore } from './files.ts';
import { readPortico, type Report } from './formats/portico.ts';
import { readRepository } from './repository.ts';
import { localSource, type Sources, type SyncResult } from './sources.ts';

/** Fetches the content of sources, by their schedule and on request. */
export class Syncs {
    readonly #ctx: Ctx;
    readonly #sources: Sources;
    readonly #files: FileStore;
    readonly #machine: Machine;

    constructor(
        ctx: Ctx,
        {
            sources,
            files,
            machine
        }: { readonly sources: Sources; readonly files: FileStore; readonly machine: Machine }
    ) {
        this.#ctx = ctx;
        this.#sources = sources;
        this.#files = files;
        this.#machine = machine;
    }

    /** Begins the sync of one source. @throws NOT_FOUND 40400; IN_USE 40901 while it is synced */
    async begin(name: string, actor: Actor | null): Promise<TaskView> {
        const source = await this.#sources.get(name);
        if (name === localSource) {
            throw errors.notFound('What was imported by hand has no source to ask');
        }
        return this.#ctx.task(
            {
                kind: 'sync',
                title: `Sync ${name}`,
                access: 'run',
                resource: name,
                key: `source:${name}`,
                ...(actor === null ? {} : { actor })
            },
            ({ signal, progress }) => this.#sync(source, signal, progress)
        );
    }

    /** Syncs all sources that are enabled, one after the other; a failure of one is kept with it. */
    async all(signal: AbortSignal): Promise<void> {
        for (const source of await this.#sources.list()) {
            if (source.enabled && source.name !== localSource && !signal.aborted) {
                await this.#sync(source, signal, () => undefined).catch((error: unknown) => {
                    if (!isFailure(error)) {
                        throw error;
                    }
                });
            }
        }
    }

    async #sync(source: SourceRow, signal: AbortSignal, report: Report): Promise<SyncResult> {
        const now = this.#machine.now();
        try {
            const reading = { signal, report, now };
            const content =
                source.kind === 'portico'
                    ? await readPortico({ ctx: this.#ctx, files: this.#files }, source, reading)
                    : await readRepository(this.#ctx, source, reading);
            if (content === null) {
                await this.#sources.unchanged(source.name, now);
                return { added: 0, changed: 0, removed: 0 };
            }
            return await this.#sources.take(source, content, now);
        } catch (error) {
            if (isFailure(error) && !signal.aborted) {
                await this.#sources.failed(source.name, error.message, now);
                await this.#tell(source, error.message);
            }
            throw error;
        }
    }

    /** A source that keeps failing is told of once. */
    async #tell({ name, state }: SourceRow, why: string): Promise<void> {
        if (state !== 'error') {
            await this.#ctx.notify({
                event: 'source-failed',
                severity: 'warning',
                title: `The source ${name} could not be synced`,
                text: why,
                data: { source: name }
            });
        }
    }
}
