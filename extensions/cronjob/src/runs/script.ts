/** Scripts: kept as text, and for as long as a run lasts a file that only the account of the run can read. */
import { randomUUID } from 'node:crypto';

import { type Files, isFailure } from '@portico/sdk';

import type { Account } from './accounts.ts';
import type { Ctx } from '../settings.ts';

/** The program that a script asks for. */
export interface Interpreter {
    readonly file: string;
    readonly args: readonly string[];
}

/** A script's file, ready to be read. */
export interface PlacedScript {
    /** Absolute. */
    readonly path: string;
    remove(): Promise<void>;
}

const usualShell = '/bin/sh';
/** Other accounts cannot enter the plugin's own folder; this one is root's alone, and not on a disk. */
const sharedRoot = '/run';
const sharedFolder = 'portico-cronjob';
const ownFolder = 'scripts';

/**
 * Reads the first line as the kernel does: `#!`, an absolute path, and at most one argument. Without it, `/bin/sh`.
 *
 * @throws Error that says what is wrong with the line
 */
export function interpreterOf(script: string): Interpreter {
    if (!script.startsWith('#!')) {
        return { file: usualShell, args: [] };
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

/** Makes the file. `placed` hears its path before there is anything to remove. */
export async function placeScript(
    ctx: Ctx,
    script: string,
    account: Account,
    placed: (path: string) => Promise<void>
): Promise<PlacedScript> {
    const name = randomUUID();
    const [root, folder, mode] = account.own
        ? ([ctx.dataDir, ownFolder, 0o700] as const)
        : ([sharedRoot, sharedFolder, 0o711] as const);
    const files = ctx.files(root);
    await ensureFolder(files, folder, mode);
    const inner = `${folder}/${name}`;
    await placed(`${root}/${inner}`);
    const handle = await files.open(inner, 'wx', 0o400);
    try {
        await handle.writeFile(script);
        await handle.chown(account.uid, account.gid);
    } finally {
        await handle.close();
    }
    return { path: `${root}/${inner}`, remove: () => removeFile(files, inner) };
}

/** Removes what a killed panel left; only files of the form that this plugin makes. */
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
