/** Shared folders of projects in backups of the panel, one item a project. Releases are not part of one: they are built, or deployed, anew. */
import { type BackupEntry, type BackupItem, type Files, isFailure } from '@portico/sdk';

import type { Project } from '../deployments/store.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const itemForm = /^shared:([a-z][a-z0-9-]{0,39})$/;
const chunkBytes = 2 ** 20;

/** Taps that give shared folders to backups, and bring them back. */
export function registerBackupHooks(ctx: Ctx, services: Services): void {
    const { folders } = services;
    ctx.hooks.tap('backup.list', () => entriesOf(services));
    ctx.hooks.tap('backup.collect', async ({ only }): Promise<BackupItem[]> => {
        const entries = await entriesOf(services);
        return entries
            .filter(({ name }) => only === undefined || only.includes(name))
            .map(({ id, ...entry }) => ({ ...entry, path: folders.absolute(sharedOf(id)) }));
    });
    ctx.hooks.tap('backup.restore', async ({ folder, items }, { signal }) => {
        const results = [];
        for (const { name, path } of items) {
            const inner = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
            const outcome = await restore(services, ctx.files(folder), { name, path: inner }, signal).catch(
                (error: unknown) => ({ ok: false, message: (error as Error).message })
            );
            results.push({ item: name, ...outcome });
        }
        return results;
    });
}

function sharedOf(projectId: number): string {
    return `projects/${projectId}/shared`;
}

/** Projects of admins whose shared folders are there: those of previews go with their pull requests. */
async function entriesOf({ store, folders }: Services): Promise<(BackupEntry & { readonly id: number })[]> {
    const entries = [];
    for (const { id, name } of await store.projects()) {
        const inner = await folders.files.list(sharedOf(id)).catch(() => []);
        if (inner.length > 0) {
            const bytes = await folders.bytes(sharedOf(id));
            entries.push({ id, name: `shared:${name}`, title: `Shared folders of ${name}`, bytes });
        }
    }
    return entries;
}

/** Puts the content of shared folders back. Programs of the project are stopped meanwhile, and those that ran run again. */
async function restore(
    services: Services,
    files: Files,
    { name, path }: { readonly name: string; readonly path: string },
    signal: AbortSignal
): Promise<{ readonly ok: boolean; readonly message?: string }> {
    const [, wanted] = itemForm.exec(name) ?? [];
    const { store, queue, changes } = services;
    const project = (await store.projects()).find((each) => each.name === wanted);
    if (project === undefined) {
        return { ok: false, message: `There is no project ${wanted ?? name}` };
    }
    const stops = project.live !== null && !project.stopped;
    return queue.hold(project.id, async () => {
        if (stops) {
            await changes.change(project, 'stop');
        }
        try {
            const left = await replace(services, files, path, project, signal);
            return left === 0
                ? { ok: true }
                : { ok: true, message: `${left} links that lead out of the shared folders were left out` };
        } finally {
            if (stops) {
                await changes.change(project, 'start');
            }
        }
    });
}

/** The folders themselves stay: programs have them open. Resolves with how many links were left out. */
async function replace(
    { folders }: Services,
    files: Files,
    path: string,
    { id }: Project,
    signal: AbortSignal
): Promise<number> {
    const { uid, gid } = await folders.account();
    let left = 0;
    const copy = async (from: string, to: string): Promise<void> => {
        for (const { name, type, mode } of await files.list(from)) {
            signal.throwIfAborted();
            const [source, target] = [`${from}/${name}`, `${to}/${name}`];
            if (type === 'folder') {
                await folders.files.createFolder(target, { mode, parents: true });
                await folders.files.chown(target, uid, gid);
                await copy(source, target);
            } else if (type === 'file') {
                await pour(files, source, folders.files, target, mode);
                await folders.files.chown(target, uid, gid);
            } else if (type === 'link') {
                left += await link(folders.files, target, await files.readLink(source));
            }
        }
    };
    for (const { name } of await files.list(path)) {
        const target = await folders.own(`${sharedOf(id)}/${name}`);
        for (const old of await folders.files.list(target)) {
            await folders.remove(`${target}/${old.name}`);
        }
    }
    await copy(path, sharedOf(id));
    return left;
}

async function pour(from: Files, source: string, to: Files, target: string, mode: number): Promise<void> {
    await using reading = await from.open(source);
    await using writing = await to.open(target, 'wx', mode);
    for await (const chunk of reading.createReadStream({ autoClose: false, highWaterMark: chunkBytes })) {
        await writing.writeFile(chunk as Uint8Array);
    }
}

/** Makes a link again. One whose target is absolute, or lies outside, is left out: 1. */
async function link(files: Files, path: string, target: string): Promise<0 | 1> {
    try {
        await files.link(path, target, 'symbolic');
        return 0;
    } catch (error) {
        if (isFailure(error) && error.code === 40001) {
            return 1;
        }
        throw error;
    }
}
