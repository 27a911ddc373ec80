/** Places a script in a file that only the account of the run can read, for as long as the run lasts. */
import { randomUUID } from 'node:crypto';

import { type Files, isFailure } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';
import type { Account } from './accounts.ts';

/** The program that the first line of a script names. */
export interface Interpreter {
    readonly file: string;
    readonly args: readonly string[];
}

/** The file of a script. */
export interface PlacedScript {
    /** Absolute path. */
    readonly path: string;
    remove(): Promise<void>;
}

const defaultShell = '/bin/sh';
/** For scripts of other accounts, which cannot enter the plugin's own folder. Only root writes here, and it is not on a disk. */
const sharedRoot = '/run';
const sharedFolder = 'portico-cronjob';
const ownFolder = 'scripts';

/**
 * Reads the first line as the kernel does: `#!`, an absolute path, and at most one argument. Without it, `/bin/sh`.
 *
 * @throws Error with what is wrong with the line
 */
export function interpreterOf(script: string): Interpreter {
    if (!script.startsWith('#!')) {
        return { file: defaultShell, args: [] };
    }
    const line = script.slice(2).split('\n', 1)[0] ?? '';
    if (line.endsWith('\r')) {
        throw new Error('its first line ends as on Windows (CR LF), which no interpreter understands');
    }
    const [, file = '', argument = ''] = /^[ \t]*([^ \t]*)[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (!file.startsWith('/') || line.length > 250) {
        throw new Error(
            'its first line names no interpreter by an absolute path, such as #!/bin/sh or #!/usr/bin/env python3'
        );
    }
    return { file, args: argument === '' ? [] : [argument] };
}

/** Creates the file. Calls `onPath` with its path before the file exists, so that a killed panel's file is found again. */
export async function placeScript(
    ctx: Ctx,
    script: string,
    account: Account,
    onPath: (path: string) => Promise<void>
): Promise<PlacedScript> {
    const name = randomUUID();
    const [root, folder, mode] = account.own
        ? ([ctx.dataDir, ownFolder, 0o700] as const)
        : ([sharedRoot, sharedFolder, 0o711] as const);
    const files = ctx.files(root);
    await ensureFolder(files, folder, mode);
    const path = `${folder}/${name}`;
    await onPath(`${root}/${path}`);
    const handle = await files.open(path, 'wx', 0o400);
    try {
        await handle.writeFile(script);
        await handle.chown(account.uid, account.gid);
    } finally {
        await handle.close();
    }
    return { path: `${root}/${path}`, remove: () => removeFile(files, path) };
}

/** Removes a script's file that a killed panel left. Ignores names that this plugin does not create. */
export async function removeScript(ctx: Ctx, path: string): Promise<void> {
    const [root, folder] = path.startsWith(`${sharedRoot}/${sharedFolder}/`)
        ? [sharedRoot, sharedFolder]
        : [ctx.dataDir, ownFolder];
    const name = path.split('/').at(-1) ?? '';
    if (/^[0-9a-f-]{36}$/.test(name)) {
        await removeFile(ctx.files(root), `${folder}/${name}`);
    }
}

async function ensureFolder(files: Files, folder: string, mode: number): Promise<void> {
    try {
        await files.createFolder(folder, { mode });
    } catch (error) {
        if (
            (error as NodeJS.ErrnoException).code !== 'EEXIST' &&
            (error as { reason?: string }).reason !== 'CONFLICT'
        ) {
            throw error;
        }
    }
    await files.chmod(folder, mode);
}

async function removeFile(files: Files, path: string): Promise<void> {
    try {
        await files.remove(path);
    } catch (error) {
        if (!(isFailure(error) ? error.code === 40400 : (error as NodeJS.ErrnoException).code === 'ENOENT')) {
            throw error;
        }
    }
}
