/** What the screens of backups read. */

/** A repository of backups, as the API gives it. */
export interface Repository {
    readonly id: number;
    readonly name: string;
    readonly state: string;
    readonly snapshots: number | null;
    readonly storedBytes: number | null;
}

/** What a snapshot was made of. */
export interface Source {
    readonly type: 'panel' | 'folder' | 'plugin';
    readonly path?: string;
    readonly plugin?: string;
}

/** A snapshot of a repository, as the API gives it. */
export interface Snapshot {
    readonly id: string;
    readonly time: string;
    readonly tags: readonly string[];
    readonly hostname: string;
    readonly sources: readonly Source[];
    readonly bytes: number | null;
    readonly pinned: boolean;
}

/** A file or folder in a snapshot. */
export interface FileEntry {
    readonly name: string;
    readonly path: string;
    readonly type: string;
    readonly size: number;
    readonly modifiedAt: string;
}

/** What shall come back, as the route takes it. */
export interface RestoreItem {
    readonly path?: string;
    readonly plugin?: string;
    readonly panel?: true;
}

/** Where the routes of the plugin are. */
export const base = '/api/plugins/backup';

/** Name of an item: one that was chosen is known by it. */
export const keyOf = ({ path, plugin }: RestoreItem): string =>
    path ?? (plugin ? `plugin ${plugin}` : 'panel');

/** Whether a path lies in a folder. */
export const isBelow = (path: string, folder: string): boolean =>
    folder === '/' ? path !== '/' : path.startsWith(`${folder}/`);

/** The items without those that lie in a folder that is chosen too. */
export function outermost(items: readonly RestoreItem[]): readonly RestoreItem[] {
    return items.filter(
        ({ path }) =>
            path === undefined || !items.some((each) => each.path !== undefined && isBelow(path, each.path))
    );
}
