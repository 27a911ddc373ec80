/** Reads repositories of Runtipi and CasaOS: each app by itself, so that one that cannot be taken over keeps no other back. */
import { isFailure } from '@portico/sdk';

import { mostIconBytes, sniffIcon } from '../catalogue/icons.ts';
import type { FileRow, SourceRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { sha256Of } from './files.ts';
import { convertCasaos } from './formats/casaos.ts';
import { aboutOf, type Category, type ReadApp, type SourceContent } from './formats/content.ts';
import { idOf } from './formats/convert.ts';
import type { Reading } from './formats/portico.ts';
import { type AppFiles, type Converted, convertRuntipi } from './formats/runtipi.ts';
import { openRepository, type Repository } from './git.ts';

const mostApps = 5_000;
const wantedFiles = {
    runtipi:
        /^apps\/([^/]+)\/(config\.json|docker-compose\.json|docker-compose\.yml|metadata\/description\.md)$/,
    casaos: /^Apps\/([^/]+)\/(docker-compose\.ya?ml)$/
} as const;

/** Icons by the folder of their app. SVG is none. */
const iconFiles = {
    runtipi: /^apps\/([^/]+)\/metadata\/(logo\.(?:jpe?g|png|webp))$/,
    casaos: /^Apps\/([^/]+)\/(icon\.(?:png|jpe?g|webp))$/
} as const;
/** Of all icons of a repository; those that come after have none. */
const mostIconsBytes = 64 * 1_048_576;

/** What a repository offers at its newest commit; null when that is the one that was taken. @throws SOURCE_UNREACHABLE 50250, TOOL_MISSING 50302 */
export async function readRepository(
    ctx: Ctx,
    source: SourceRow,
    { signal, report }: Reading
): Promise<SourceContent | null> {
    await using repository = await openRepository(ctx, source, signal);
    if (repository === null) {
        return null;
    }
    const kind = source.kind as keyof typeof wantedFiles;
    const folders = foldersOf(repository, wantedFiles[kind]);
    const icons = foldersOf(repository, iconFiles[kind]);
    const files: FileRow[] = [];
    const apps: ReadApp[] = [];
    let iconsBytes = 0;
    for (const [folder, paths] of folders) {
        signal.throwIfAborted();
        const read = await repository.read([...paths.values()]);
        const own: AppFiles = new Map([...paths].map(([name, path]) => [name, read.get(path) ?? '']));
        const { app, file } = readOne(kind, folder, own);
        if (!apps.some(({ id }) => id === app.id)) {
            const [path] = icons.get(folder)?.values() ?? [];
            const icon = await readIcon(repository, iconsBytes < mostIconsBytes ? path : undefined);
            iconsBytes += icon?.body.length ?? 0;
            apps.push({ ...app, icon: icon?.sha256 ?? null });
            files.push(...file, ...(icon === null ? [] : [icon]));
        }
        report(apps.length / folders.size);
    }
    return {
        taken: repository.commit,
        sequence: null,
        commit: repository.commit,
        expiresAt: null,
        publicKey: null,
        nextKey: null,
        categories: categoriesOf(apps),
        templates: [],
        apps,
        files
    };
}

/** The files of each app's folder, by their names in it. */
function foldersOf({ paths }: Repository, pattern: RegExp): ReadonlyMap<string, ReadonlyMap<string, string>> {
    const folders = new Map<string, Map<string, string>>();
    for (const path of paths) {
        const [, folder, name] = pattern.exec(path) ?? [];
        if (folder !== undefined && name !== undefined && (folders.has(folder) || folders.size < mostApps)) {
            folders.set(folder, (folders.get(folder) ?? new Map<string, string>()).set(name, path));
        }
    }
    return folders;
}

function readOne(
    kind: keyof typeof wantedFiles,
    folder: string,
    files: AppFiles
): { readonly app: ReadApp; readonly file: readonly FileRow[] } {
    try {
        return appOf(convert(kind, folder, files));
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        const about = {
            title: { en: folder },
            tagline: {},
            categories: [],
            architectures: [],
            website: null
        };
        const app = {
            id: idOf(folder) || 'unnamed',
            version: '0',
            about,
            document: null,
            icon: null,
            why: error.message
        };
        return { app, file: [] };
    }
}

/** What is too large, or no image, is left out: an app is none the worse for it. */
async function readIcon(repository: Repository, path: string | undefined): Promise<FileRow | null> {
    const bytes = path === undefined ? null : await repository.readBytes(path, mostIconBytes);
    const type = bytes === null ? null : sniffIcon(bytes);
    return bytes === null || type === null
        ? null
        : { sha256: sha256Of(bytes), type, body: bytes.toString('base64') };
}

function convert(kind: keyof typeof wantedFiles, folder: string, files: AppFiles): Converted {
    if (kind === 'runtipi') {
        return convertRuntipi(files);
    }
    const text = files.get('docker-compose.yml') ?? files.get('docker-compose.yaml') ?? '';
    return convertCasaos(text, folder, { plain: false });
}

/** An app of a document, and the file that it is kept as. */
export function appOf({ document }: Converted): { readonly app: ReadApp; readonly file: readonly FileRow[] } {
    const body = JSON.stringify(document);
    const sha256 = sha256Of(body);
    const { id, version } = document;
    return {
        app: { id, version, about: aboutOf(document), document: sha256, icon: null, why: null },
        file: [{ sha256, type: 'application/json', body }]
    };
}

function categoriesOf(apps: readonly ReadApp[]): readonly Category[] {
    const ids = new Set(apps.flatMap(({ about }) => about.categories));
    return [...ids]
        .sort()
        .map((id) => ({ id, title: { en: id.charAt(0).toUpperCase() + id.slice(1).replaceAll('-', ' ') } }));
}
