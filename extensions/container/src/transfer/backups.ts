/** Volumes in backups of the panel, one item each. */
import type { Files } from '@portico/sdk';

import type { EngineVolume } from '../engine/documents.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { isPlain } from '../volumes/archives.ts';

const itemForm = /^volume:([a-zA-Z0-9][a-zA-Z0-9_.-]*)$/;
const [archiveFile, labelsFile] = ['volume.tar', 'labels.json'];

/** Volumes with a name. What one without a name holds goes with its container. */
async function named({ inventory }: Services): Promise<readonly EngineVolume[]> {
    return [...(await inventory.volumes()).values()].filter(
        (volume) => isPlain(volume) && !/^[0-9a-f]{64}$/.test(volume.Name)
    );
}

const entryOf = (name: string) => ({ name: `volume:${name}`, title: `Volume ${name}` });

/** Taps that give volumes to backups, and bring them back. */
export function registerBackupHooks(ctx: Ctx, services: Services): void {
    const { archives } = services;
    ctx.hooks.tap('backup.list', async () => (await named(services)).map(({ Name: name }) => entryOf(name)));
    ctx.hooks.tap('backup.collect', async ({ folder, only }, { signal }) => {
        const files = ctx.files(folder);
        const wanted = (await named(services)).filter(
            ({ Name: name }) => only === undefined || only.includes(`volume:${name}`)
        );
        const items = [];
        for (const [index, { Name: name, Labels: labels }] of wanted.entries()) {
            const path = String(index);
            await files.createFolder(path, { mode: 0o700 });
            const bytes = await pour(files, `${path}/${archiveFile}`, archives.read(name, signal));
            await using handle = await files.open(`${path}/${labelsFile}`, 'wx', 0o600);
            await handle.writeFile(JSON.stringify(labels ?? {}));
            items.push({ ...entryOf(name), path, bytes });
        }
        return items;
    });
    ctx.hooks.tap('backup.restore', async ({ folder, items }, { signal }) => {
        const results = [];
        for (const { name, path } of items) {
            const inner = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
            const outcome = await restore(services, ctx.files(folder), { name, path: inner }, signal).then(
                () => ({ ok: true }),
                (error: unknown) => ({ ok: false, message: (error as Error).message })
            );
            results.push({ item: name, ...outcome });
        }
        return results;
    });
}

async function pour(files: Files, path: string, source: AsyncIterable<Uint8Array>): Promise<number> {
    await using handle = await files.open(path, 'wx', 0o600);
    let bytes = 0;
    for await (const chunk of source) {
        bytes += chunk.byteLength;
        await handle.writeFile(chunk);
    }
    return bytes;
}

/** A volume that is gone is made again with its labels, so that its stack finds it. */
async function restore(
    { archives, inventory, engine, snapshots }: Services,
    files: Files,
    { name, path }: { readonly name: string; readonly path: string },
    signal: AbortSignal
): Promise<void> {
    const [, volume] = itemForm.exec(name) ?? [];
    if (volume === undefined) {
        throw new TypeError('This is no volume');
    }
    if (!(await inventory.volumes()).has(volume)) {
        await using handle = await files.open(`${path}/${labelsFile}`);
        const labels = JSON.parse(await handle.readFile('utf8')) as object;
        await engine.call('POST', '/volumes/create', {
            body: { Name: volume, Driver: 'local', Labels: labels }
        });
    }
    await using archive = await files.open(`${path}/${archiveFile}`);
    await snapshots.whileStopped([volume], async () => {
        const source = archive.createReadStream({ autoClose: false }) as AsyncIterable<Uint8Array>;
        await archives.replace(volume, source, signal);
    });
}
