/** The panel around the page, and what it says of files. */
import { connect, type PageAnswer, PanelError } from '@portico/sdk/page';

/** A folder that an admin opened. */
export interface Root {
    readonly name: string;
    readonly path: string;
    readonly available: boolean;
    readonly readOnly: boolean;
    readonly quotaBytes: number | null;
    readonly usedBytes: number | null;
    readonly space: { readonly total: number; readonly available: number } | null;
}

/** A place below a root. */
export interface At {
    readonly root: string;
    readonly path: string;
}

/** One file or folder. */
export interface Entry {
    readonly name: string;
    readonly path: string;
    readonly type: 'file' | 'folder' | 'link' | 'other';
    readonly size: number;
    readonly mode: number;
    readonly owner: string | number;
    readonly modifiedAt: string;
    readonly version: string;
}

/** One entry with what only it alone says. */
export interface OneEntry extends Entry {
    readonly target: string | null;
    readonly group: string | number;
}

/** A line of a file that has the text. */
export interface Match {
    readonly path: string;
    readonly line: number;
    readonly column: number;
    readonly text: string;
}

/** What became of many entries. */
export interface BatchResult {
    readonly done: number;
    readonly skipped: number;
    readonly failed: number;
    readonly items: readonly {
        readonly root: string;
        readonly path: string;
        readonly state: 'done' | 'skipped' | 'failed';
        readonly code: number | null;
        readonly to: string | null;
    }[];
}

/** What a folder holds. */
export interface TreeSize {
    readonly bytes: number;
    readonly allocated: number;
    readonly files: number;
    readonly folders: number;
    readonly largest: readonly { readonly path: string; readonly size: number }[];
}

/** An earlier content of a file. */
export interface Version {
    readonly id: number;
    readonly size: number;
    readonly at: string;
    readonly by: string;
}

/** What is in an archive. */
export interface ArchiveEntry {
    readonly name: string;
    readonly type: 'file' | 'folder' | 'other';
    readonly size: number | null;
}

/** A place that the user marked. */
export interface Favourite extends At {
    readonly id: number;
    readonly title: string;
    readonly type: Entry['type'] | null;
    readonly missing: boolean;
}

/** A public link to a file or folder. */
export interface Share extends At {
    readonly id: number;
    readonly maker: string;
    readonly expiresAt: string;
    readonly maxDownloads: number | null;
    readonly downloads: number;
}

/** What lies in the trash. */
export interface Removed extends At {
    readonly id: number;
    readonly name: string;
    readonly type: Entry['type'];
    readonly size: number;
    readonly deletedAt: string;
    readonly deletedBy: string;
}

/** A terminal that is open. */
export interface OpenTerminal {
    readonly id: number;
    readonly username: string;
    readonly startedAt: string;
    readonly bytes: number;
    readonly recording: number | null;
}

/** A task of the panel. */
export interface Task {
    readonly id: number;
    readonly state: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
    readonly progress: number | null;
    readonly result?: unknown;
    readonly error?: { readonly message: string } | null;
}

type ById = { readonly id: number };

interface Operations {
    readonly 'filemanager.roots': { readonly data: readonly Root[] };
    readonly 'filemanager.list': {
        readonly query: At & { readonly cursor?: string };
        readonly data: readonly Entry[];
    };
    readonly 'filemanager.entry': { readonly query: At; readonly data: OneEntry };
    readonly 'filemanager.search': {
        readonly query: At & { readonly q: string };
        readonly data: readonly Entry[];
    };
    readonly 'filemanager.searchContent': {
        readonly query: At & { readonly q: string; readonly case: boolean; readonly word: boolean };
        readonly data: readonly Match[];
    };
    readonly 'filemanager.read': { readonly query: At; readonly data: Blob };
    readonly 'filemanager.preview': {
        readonly query: At;
        readonly data: { readonly kind: string; readonly type: string; readonly text: string | null };
    };
    readonly 'filemanager.makeFolder': { readonly body: At; readonly data: Entry };
    readonly 'filemanager.move': {
        readonly body: { readonly root: string; readonly from: string; readonly to: string };
        readonly data: Entry;
    };
    readonly 'filemanager.batch': {
        readonly body: {
            readonly action: string;
            readonly items: readonly At[];
            readonly to?: At;
            readonly onConflict?: string;
            readonly mode?: string;
        };
        readonly data: BatchResult | Task;
    };
    readonly 'filemanager.remove': { readonly query: At; readonly data: unknown };
    readonly 'filemanager.size': { readonly body: At; readonly data: TreeSize | Task };
    readonly 'filemanager.checksums': {
        readonly body: { readonly root: string; readonly paths: readonly string[] };
        readonly data: readonly { readonly checksum: string }[] | Task;
    };
    readonly 'filemanager.versions': { readonly query: At; readonly data: readonly Version[] };
    readonly 'filemanager.version': { readonly path: ById; readonly data: Blob };
    readonly 'filemanager.restoreVersion': { readonly path: ById; readonly data: Entry };
    readonly 'filemanager.archiveEntries': {
        readonly query: At & { readonly limit: number };
        readonly data: readonly ArchiveEntry[];
    };
    readonly 'filemanager.pack': {
        readonly body: { readonly root: string; readonly paths: readonly string[]; readonly to: string };
        readonly data: Task;
    };
    readonly 'filemanager.extract': {
        readonly body: At & { readonly to: string; readonly entries: readonly string[] };
        readonly data: Task;
    };
    readonly 'filemanager.downloadFolder': {
        readonly query: At & { readonly format: string };
        readonly data: Blob;
    };
    readonly 'filemanager.fetch': {
        readonly body: At & { readonly url: string; readonly sha256?: string };
        readonly data: Task;
    };
    readonly 'filemanager.favourites': { readonly data: readonly Favourite[] };
    readonly 'filemanager.addFavourite': { readonly body: At; readonly data: Favourite };
    readonly 'filemanager.removeFavourite': { readonly path: ById; readonly data: null };
    readonly 'filemanager.shares': { readonly data: readonly Share[] };
    readonly 'filemanager.share': {
        readonly body: At & { readonly expiresAt?: string; readonly maxDownloads?: number };
        readonly data: Share & { readonly url: string };
    };
    readonly 'filemanager.removeShare': { readonly path: ById; readonly data: null };
    readonly 'filemanager.trash': { readonly data: readonly Removed[] };
    readonly 'filemanager.restore': { readonly body: ById; readonly data: Entry };
    readonly 'filemanager.emptyTrash': { readonly data: Task | null };
    readonly 'filemanager.terminals': { readonly data: readonly OpenTerminal[] };
    readonly 'filemanager.endTerminal': { readonly path: ById; readonly data: null };
    readonly 'filemanager.openTerminal': {
        readonly body: { readonly columns: number; readonly rows: number };
        readonly data: { readonly path: string };
    };
    readonly 'filemanager.write': { readonly data: Entry };
    readonly 'filemanager.upload': { readonly data: null };
    readonly 'tasks.read': { readonly path: ById; readonly data: Task };
    readonly 'tasks.cancel': { readonly path: ById; readonly data: unknown };
}

/** The connection of this page to the panel. */
export const panel = await connect<Operations>();

/** Whether the user has a permission of this plugin. */
export const may = (permission: string): boolean => panel.context.permissions.includes(permission);

/** What an error says. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Runs the work, and tells the user when it fails. @returns whether it went well */
export async function tell(work: () => Promise<unknown>): Promise<boolean> {
    try {
        await work();
        return true;
    } catch (error) {
        if (!(error instanceof PanelError && error.reason === 'CANCELLED')) {
            await panel.toast(textOf(error), 'bad');
        }
        return false;
    }
}

const pollMs = 500;

/** What an answer has at once, or the task in it once that has ended. @throws Error with what the task says of its failure */
export async function resultOf<T>(
    { status, data }: Pick<PageAnswer, 'status' | 'data'>,
    {
        signal,
        onProgress
    }: { readonly signal?: AbortSignal; readonly onProgress?: (part: number) => void } = {}
): Promise<T> {
    if (status !== 202) {
        return data as T;
    }
    const path = { id: (data as Task).id };
    const cancel = (): void => void panel.call('tasks.cancel', { path }).catch(() => undefined);
    signal?.addEventListener('abort', cancel, { once: true });
    for (;;) {
        const { data: task } = await panel.call('tasks.read', { path });
        if (task.state === 'succeeded') {
            return task.result as T;
        }
        if (task.state === 'failed' || task.state === 'cancelled') {
            throw new Error(task.error?.message ?? task.state);
        }
        onProgress?.(task.progress ?? 0);
        await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
}

/** The part of a path before its last slash. */
export const parentOf = (path: string): string => path.split('/').slice(0, -1).join('/');

/** The last part of a path. */
export const nameOf = (path: string): string => path.split('/').pop() ?? path;

/** A path below a folder. */
export const join = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`);
