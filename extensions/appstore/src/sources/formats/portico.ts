/** Reads signed catalogues: an index whose signature is checked first, then the documents and icons that are new, each by its SHA-256. */
import { mostDocumentBytes, readAppDocument } from '../../catalogue/app-document.ts';
import { fetchFile } from '../../catalogue/fetching.ts';
import { mostIconBytes, sniffIcon } from '../../catalogue/icons.ts';
import { type IndexApp, mostIndexBytes, readIndex } from '../../catalogue/index-document.ts';
import { type MinisignKey, readPublicKey, verifySignature } from '../../catalogue/minisign.ts';
import type { FileRow, SourceRow } from '../../entities.ts';
import { fail } from '../../errors.ts';
import type { Ctx } from '../../settings.ts';
import { type FileStore, sha256Of } from '../files.ts';
import { aboutOf, type ReadApp, type SourceContent } from './content.ts';

const mostSignatureBytes = 4_096;
/** Bytes of documents and icons that one sync may bring. */
const mostNewBytes = 512 * 1_048_576;
const atOnce = 6;

/** How far a sync has come: 0 to 1. */
export type Report = (fraction: number, text?: string) => void;

/** What a reading goes by. */
export interface Reading {
    readonly signal: AbortSignal;
    readonly report: Report;
    readonly now: number;
}

/**
 * Reads a signed catalogue.
 *
 * @returns null when the index is the one that was taken
 * @throws SIGNATURE_INVALID 42251, INDEX_INVALID 42250, SOURCE_UNREACHABLE 50250
 */
export async function readPortico(
    { ctx, files }: { readonly ctx: Ctx; readonly files: FileStore },
    source: SourceRow,
    { signal, report, now }: Reading
): Promise<SourceContent | null> {
    const signature = await fetchFile(ctx, `${source.url}/index.json.minisig`, mostSignatureBytes, signal);
    const bytes = await fetchFile(ctx, `${source.url}/index.json`, mostIndexBytes, signal);
    const key = verifySignature(bytes, signature.toString('utf8'), trustedKeys(source));
    const index = readIndex(bytes.toString('utf8'));
    const expiresAt = Date.parse(index.expiresAt);
    if (source.sequence !== null && index.sequence < source.sequence) {
        throw fail.INDEX_INVALID({
            why: `it is older than the one that was seen: ${index.sequence} after ${source.sequence}`
        });
    }
    if (expiresAt <= now) {
        throw fail.INDEX_INVALID({ why: `it expired at ${index.expiresAt}` });
    }
    if (index.nextKey !== undefined && readPublicKey(index.nextKey) === null) {
        throw fail.INDEX_INVALID({ why: '"nextKey" is no public key of minisign' });
    }
    const taken = sha256Of(bytes);
    if (taken === source.taken) {
        return null;
    }
    const fetched = await fetchNew({ ctx, files, source, signal, report }, index.apps);
    return {
        taken,
        sequence: index.sequence,
        commit: null,
        expiresAt,
        publicKey: key.line,
        nextKey: index.nextKey ?? null,
        categories: index.categories,
        templates: index.templates,
        apps: await Promise.all(index.apps.map((app) => readApp(app, fetched, files))),
        files: [...fetched.values()]
    };
}

/** The key that is pinned, and the one that the index before announced. */
function trustedKeys({ publicKey, nextKey }: SourceRow): readonly MinisignKey[] {
    return [publicKey, nextKey].flatMap((line) => {
        const key = line === null ? null : readPublicKey(line);
        return key === null ? [] : [key];
    });
}

interface Fetching {
    readonly ctx: Ctx;
    readonly files: FileStore;
    readonly source: SourceRow;
    readonly signal: AbortSignal;
    readonly report: Report;
}

interface Wanted {
    readonly app: string;
    readonly path: string;
    readonly sha256: string;
    readonly isIcon: boolean;
}

async function fetchNew(
    fetching: Fetching,
    apps: readonly IndexApp[]
): Promise<ReadonlyMap<string, FileRow>> {
    const { files, report, signal } = fetching;
    const all = apps.flatMap(({ id, path, sha256, icon }): Wanted[] => [
        { app: id, path, sha256, isIcon: false },
        ...(icon === undefined ? [] : [{ app: id, ...icon, isIcon: true }])
    ]);
    const known = await files.known(all.map(({ sha256 }) => sha256));
    const wanted = [
        ...new Map(all.filter(({ sha256 }) => !known.has(sha256)).map((each) => [each.sha256, each])).values()
    ];
    const fetched = new Map<string, FileRow>();
    let bytes = 0;
    const next = wanted.values();
    const work = async (): Promise<void> => {
        for (const each of next) {
            signal.throwIfAborted();
            const file = await fetchOne(fetching, each);
            bytes += file.body.length;
            if (bytes > mostNewBytes) {
                throw fail.INDEX_INVALID({ why: `its documents have more than ${mostNewBytes} bytes` });
            }
            fetched.set(each.sha256, file);
            report(fetched.size / wanted.length);
        }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return fetched;
}

/** @throws SIGNATURE_INVALID 42251 for bytes with another hash than the index says */
async function fetchOne(
    { ctx, source, signal }: Fetching,
    { app, path, sha256, isIcon }: Wanted
): Promise<FileRow> {
    const most = isIcon ? mostIconBytes : mostDocumentBytes;
    const bytes = await fetchFile(ctx, `${source.url}/${path}`, most, signal);
    if (sha256Of(bytes) !== sha256) {
        throw fail.SIGNATURE_INVALID({ why: `${path} of ${app} is not what the index names` });
    }
    if (!isIcon) {
        return { sha256, type: 'application/json', body: bytes.toString('utf8') };
    }
    const type = sniffIcon(bytes);
    if (type === null) {
        throw fail.INDEX_INVALID({ why: `the icon of ${app} is no PNG, JPEG or WebP` });
    }
    return { sha256, type, body: bytes.toString('base64') };
}

/** Holds a document against what the index says of it. @throws INDEX_INVALID 42250 */
async function readApp(
    { id, version, title, tagline, categories, architectures, sha256, icon }: IndexApp,
    fetched: ReadonlyMap<string, FileRow>,
    files: FileStore
): Promise<ReadApp> {
    const about = { title, tagline, categories, architectures };
    const fresh = fetched.get(sha256);
    // What was kept was checked when it came.
    const body = fresh?.body ?? (await files.find(sha256))?.body ?? '';
    const document = readAppDocument(body);
    if (document.id !== id || document.version !== version) {
        throw fail.INDEX_INVALID({
            why: `the document of ${id} ${version} is that of ${document.id} ${document.version}`
        });
    }
    return {
        id,
        version,
        about: { ...about, website: aboutOf(document).website },
        document: sha256,
        icon: icon?.sha256 ?? null,
        why: null
    };
}
