/** What all sources offer together: searched, filtered, and read one by one. */
import { errors } from '@portico/sdk';
import { findRows } from '@portico/sdk/db';

import { type AppDocument, checkAppDocument } from '../catalogue/app-document.ts';
import { readPublicKey } from '../catalogue/minisign.ts';
import { inLanguage } from '../catalogue/texts.ts';
import { AppEntity, type AppRow, type SourceRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import type { FileStore } from '../sources/files.ts';
import type { AppAbout, Category } from '../sources/formats/content.ts';
import type { Sources } from '../sources/sources.ts';

/** An app with the source that offers it. */
export interface OfferedApp {
    readonly key: string;
    readonly row: AppRow;
    readonly about: AppAbout;
    readonly source: SourceRow;
    /** What a search looks through: id, titles and taglines of all languages, categories. */
    readonly words: string;
}

/** What a list is narrowed by. */
export interface AppFilter {
    readonly q?: string | undefined;
    readonly category?: string | undefined;
    readonly source?: string | undefined;
}

/** The catalogue, kept in memory until a source changes. */
export class Catalogue {
    readonly #ctx: Ctx;
    readonly #sources: Sources;
    readonly #files: FileStore;
    #loaded: Promise<ReadonlyMap<string, OfferedApp>> | null = null;

    constructor(ctx: Ctx, sources: Sources, files: FileStore) {
        this.#ctx = ctx;
        this.#sources = sources;
        this.#files = files;
        sources.onChange(() => {
            this.#loaded = null;
        });
    }

    /** Apps by their keys, in that order. */
    async list({ q, category, source }: AppFilter): Promise<readonly OfferedApp[]> {
        const all = [...(await this.#all()).values()];
        const words = (q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
        if (words.length === 0 && category === undefined && source === undefined) {
            return all;
        }
        return all.filter(
            (app) =>
                (source === undefined || app.source.name === source) &&
                (category === undefined || app.about.categories.includes(category)) &&
                words.every((word) => app.words.includes(word))
        );
    }

    async find(source: string, id: string): Promise<OfferedApp | null> {
        return (await this.#all()).get(`${source}/${id}`) ?? null;
    }

    /** @throws NOT_FOUND 40400 */
    async get(source: string, id: string): Promise<OfferedApp> {
        const app = await this.find(source, id);
        if (app === null) {
            throw errors.notFound(
                `No source named ${source} offers an app ${id}: see the names, or sync the source`
            );
        }
        return app;
    }

    /** The document of an app; null where it cannot be taken over. */
    async document({ row }: OfferedApp): Promise<AppDocument | null> {
        const file = row.document === null ? null : await this.#files.find(row.document);
        return file === null ? null : checkAppDocument(JSON.parse(file.body));
    }

    /** Categories that apps have, with their number. */
    async categories(language: string | undefined): Promise<{ id: string; title: string; count: number }[]> {
        const counts = new Map<string, number>();
        for (const { about } of (await this.#all()).values()) {
            for (const category of new Set(about.categories)) {
                counts.set(category, (counts.get(category) ?? 0) + 1);
            }
        }
        const titles = new Map<string, string>();
        for (const { categories } of await this.#sources.list()) {
            for (const { id, title } of JSON.parse(categories) as Category[]) {
                titles.set(id, titles.get(id) ?? inLanguage(title, language, this.#ctx.settings.language));
            }
        }
        return [...counts]
            .map(([id, count]) => ({ id, title: titles.get(id) || id, count }))
            .sort((one, other) => (one.id < other.id ? -1 : 1));
    }

    #all(): Promise<ReadonlyMap<string, OfferedApp>> {
        const loading = (this.#loaded ??= this.#load().catch((error: unknown) => {
            this.#loaded = null;
            throw error;
        }));
        return loading;
    }

    async #load(): Promise<ReadonlyMap<string, OfferedApp>> {
        const sources = new Map((await this.#sources.list()).map((source) => [source.name, source]));
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, AppEntity, {}, { orderBy: { key: 'asc' } })
        );
        return new Map(
            rows.flatMap((row): [string, OfferedApp][] => {
                const source = sources.get(row.source);
                const about = JSON.parse(row.about) as AppAbout;
                return source === undefined
                    ? []
                    : [[row.key, { key: row.key, row, about, source, words: wordsOf(row.id, about) }]];
            })
        );
    }
}

function wordsOf(id: string, { title, tagline, categories }: AppAbout): string {
    return [id, ...Object.values(title), ...Object.values(tagline), ...categories].join('\n').toLowerCase();
}

/** Tells sources whose apps are signed. */
export const isSigned = ({ kind }: SourceRow): boolean => kind === 'portico';

/** The id of the key that a source is pinned to; null without signatures. */
export const keyIdOf = ({ publicKey }: SourceRow): string | null =>
    publicKey === null ? null : (readPublicKey(publicKey)?.id ?? null);

/** The state of a source now. */
export function sourceState(source: SourceRow, now: number): 'pending' | 'ready' | 'expired' | 'error' {
    if (source.expiresAt !== null && source.expiresAt <= now) {
        return 'expired';
    }
    return source.state as 'pending' | 'ready' | 'error';
}

/** Why an app cannot be installed; null when it can. */
export function unavailableBecause(
    { row, source, about }: OfferedApp,
    { now, architecture }: { readonly now: number; readonly architecture: string }
): string | null {
    if (row.document === null) {
        return row.why ?? 'It cannot be taken over';
    }
    if (!source.enabled) {
        return 'Its source is disabled';
    }
    if (sourceState(source, now) === 'expired') {
        return 'The catalogue of its source has expired';
    }
    if (!isSigned(source) && !source.acceptUnsigned) {
        return 'Its source is not signed, and unsigned apps are not accepted there';
    }
    const { architectures } = about;
    return architectures.length > 0 && !architectures.includes(architecture)
        ? `It does not run on ${architecture}`
        : null;
}
