/**
 * Folders and files that go from plugin to plugin by the hooks of backups. The plugin that lends a folder must be able to open it itself, and
 * what a plugin gives lies in that folder or in its own grants: nothing comes by a hook that the giver could not read.
 */
import { resolve } from 'node:path';

import type { BackupItem } from '@portico/sdk';
import type { Grants } from '@portico/sdk/host';

import type { PluginHostPorts } from '../ports.ts';
import { within } from './file-name.ts';
import { type FilesOptions, GrantedRoot } from './granted-root.ts';
import { LentFolders } from './lent-folders.ts';

/** What the files of one plugin may reach. */
export type Reach = Omit<FilesOptions, 'scope'>;

/** What a plugin with these grants and this folder may reach; nothing is lent to it yet. */
export function createReach(grants: Grants, own: string, ports: PluginHostPorts): Reach {
    return {
        grants,
        own,
        lent: new LentFolders(),
        machine: ports.machine?.root ?? '',
        forbidden: () => ports.forbidden()
    };
}

/** The hook whose taps give items. */
export const collectBackup = 'backup.collect';
/** Hooks that lend a folder to their taps. */
const lending: ReadonlySet<string> = new Set([collectBackup, 'backup.restore']);
const nameForm = /^[^/\p{Cc}]{1,200}$/u;
const mostItems = 10_000;

type AskTap = (payload: unknown, call: { signal: AbortSignal }) => Promise<unknown>;

/** Checks the folder that a plugin lends. @throws NOT_FOUND 40400; CAPABILITY_MISSING 50305 when the plugin may not open it */
export async function checkLent(hook: string, payload: unknown, reach: Reach): Promise<void> {
    if (lending.has(hook)) {
        await new GrantedRoot((payload as { readonly folder: string }).folder, reach).real();
    }
}

/** Asks a tap for items, and gives them with absolute paths. @throws Error when one lies elsewhere */
export function givingItems(ask: AskTap, reach: Reach): AskTap {
    return async (payload, call) => {
        const { folder } = payload as { readonly folder: string };
        const items = ((await ask(payload, call)) ?? []) as readonly BackupItem[];
        if (!Array.isArray(items) || items.length > mostItems) {
            throw new TypeError(`A tap of ${collectBackup} gives at most ${mostItems} items`);
        }
        const names = new Set(items.map(({ name }) => name));
        if (names.size !== items.length) {
            throw new TypeError('Two items have the same name');
        }
        return Promise.all(items.map((item) => givenItem(item, folder, reach)));
    };
}

async function givenItem(item: BackupItem, folder: string, reach: Reach): Promise<BackupItem> {
    const { name, title, path, bytes } = item;
    if (
        typeof name !== 'string' ||
        !nameForm.test(name) ||
        typeof title !== 'string' ||
        typeof path !== 'string' ||
        (bytes !== undefined && !(Number.isSafeInteger(bytes) && bytes >= 0))
    ) {
        throw new TypeError(
            'An item has a name without slashes, a title, a path, and bytes where they are known'
        );
    }
    const lease = await reach.lent.lend(folder);
    try {
        const absolute = resolve(folder, path);
        // A relative path that climbs out of the folder is a mistake, also where it leads to something granted.
        if (!path.startsWith('/') && !within(absolute, resolve(folder))) {
            throw new Error(`The item ${name} lies outside of the lent folder`);
        }
        return {
            name,
            title,
            path: await new GrantedRoot(absolute, reach).real(),
            ...(bytes === undefined ? {} : { bytes })
        };
    } finally {
        await lease[Symbol.asyncDispose]();
    }
}
