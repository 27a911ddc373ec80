/** The panel around the page, and what it says of files. */
import { connect, PanelError } from '@portico/sdk/page';

/** A folder that an admin opened. */
export interface Root {
    readonly name: string;
    readonly path: string;
    readonly available: boolean;
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

interface Operations {
    readonly 'filemanager.roots': { readonly data: readonly Root[] };
    readonly 'filemanager.list': {
        readonly query: { readonly root: string; readonly path: string; readonly cursor?: string };
        readonly data: readonly Entry[];
    };
    readonly 'filemanager.search': {
        readonly query: { readonly root: string; readonly path: string; readonly q: string };
        readonly data: readonly Entry[];
    };
    readonly 'filemanager.read': {
        readonly query: { readonly root: string; readonly path: string };
        readonly data: Blob;
    };
    readonly 'filemanager.makeFolder': {
        readonly body: { readonly root: string; readonly path: string };
        readonly data: Entry;
    };
    readonly 'filemanager.move': {
        readonly body: { readonly root: string; readonly from: string; readonly to: string };
        readonly data: Entry;
    };
    readonly 'filemanager.remove': {
        readonly query: { readonly root: string; readonly path: string };
        readonly data: unknown;
    };
    readonly 'filemanager.openTerminal': {
        readonly body: { readonly columns: number; readonly rows: number };
        readonly data: { readonly path: string };
    };
    readonly 'filemanager.write': { readonly data: Entry };
    readonly 'filemanager.upload': { readonly data: null };
}

/** The panel. */
export const panel = await connect<Operations>();

/** Whether the user has a permission of this plugin. */
export const may = (permission: string): boolean => panel.context.permissions.includes(permission);

/** Runs the work, and tells the user when it fails. @returns whether it went well */
export async function tell(work: () => Promise<unknown>): Promise<boolean> {
    try {
        await work();
        return true;
    } catch (error) {
        if (!(error instanceof PanelError && error.reason === 'CANCELLED')) {
            await panel.toast(error instanceof Error ? error.message : String(error), 'bad');
        }
        return false;
    }
}

/** The part of a path before its last slash. */
export const parentOf = (path: string): string => path.split('/').slice(0, -1).join('/');

/** A path below a folder. */
export const join = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`);
