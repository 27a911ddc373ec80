/** Content of volumes as tar archives, by the engine: owners, bits and links stay as they are. */
import { randomBytes } from 'node:crypto';
import { posix } from 'node:path';

import { errors, type FailureError, isFailure } from '@portico/sdk';

import type { Making } from '../containers/making.ts';
import type { EngineVolume } from '../engine/documents.ts';
import { type Engine, wholly } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { emptySpec, labelOf } from '../spec/spec.ts';
import { tarOf } from '../spec/tar.ts';

/** An image with nothing in it: containers of it are made to reach a volume, and are never started. Podman gives an import no other tag. */
export const emptyImage = 'portico-empty:latest';
const folder = '/volume';

const newName = (): string => `portico-volume-${randomBytes(6).toString('hex')}`;
const fromRoot = (path: string): string => path.replace(/^\/+/, '');
/** Where the content of before waits for its removal, beside the folder that was unpacked. */
const besides = (draft: string): string => posix.join(posix.dirname(draft), 'before');

/** Without it, the new name is an empty folder for a moment, and a kill then looks like a volume that lost its content. */
const inOneStep = { replace: true } as const;

/** Reads and writes whole volumes. */
export class VolumeArchives {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #making: Making;

    constructor(
        ctx: Ctx,
        parts: { readonly engine: Engine; readonly inventory: Inventory; readonly making: Making }
    ) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#inventory = parts.inventory;
        this.#making = parts.making;
    }

    /** A volume of the engine's own. @throws NOT_FOUND 40400; ENGINE_LACKS 50150 for one whose content lies elsewhere, such as on a server */
    async plain(name: string): Promise<EngineVolume> {
        const volume = (await this.#inventory.volumes()).get(name);
        if (volume === undefined) {
            throw errors.notFound('There is no volume of that name');
        }
        if (!isPlain(volume)) {
            throw fail.ENGINE_LACKS({ what: 'what this volume holds does not lie in the engine' });
        }
        return volume;
    }

    /** The content, as a tar archive. @throws NOT_FOUND 40400, ENGINE_LACKS 50150 */
    async *read(name: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
        await this.plain(name);
        const helper = await this.#helper(name, true);
        try {
            const response = await this.#engine.open('GET', `/containers/${helper}/archive`, {
                query: { path: `${folder}/.` },
                signal,
                patienceMs: 60_000
            });
            yield* wholly(response, signal);
        } finally {
            await this.#making.remove(helper);
        }
    }

    /**
     * Puts an archive in the place of the content. It is unpacked beside the volume and takes its place by renames, so what is no whole archive
     * changes nothing. Nothing may write to the volume meanwhile.
     *
     * @throws ENGINE_REFUSED 42254 for what is no archive
     */
    async replace(name: string, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
        const { Mountpoint: mountpoint } = await this.plain(name);
        const draft = await this.#engine.call<EngineVolume>('POST', '/volumes/create', {
            body: { Name: newName(), Driver: 'local', Labels: { [labelOf.helper]: name } }
        });
        try {
            await this.#unpack(draft.Name, source, signal);
            await this.#exchange(mountpoint, draft.Mountpoint);
        } finally {
            await this.#engine.call('DELETE', `/volumes/${draft.Name}`);
        }
    }

    async #unpack(volume: string, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
        const helper = await this.#helper(volume, false);
        try {
            await this.#engine.call('PUT', `/containers/${helper}/archive`, {
                query: { path: folder },
                body: source,
                signal,
                patienceMs: 0
            });
        } finally {
            await this.#making.remove(helper);
        }
    }

    /** After the first step the volume has no folder. {@link VolumeArchives.sweep} finds one that a kill left so. */
    async #exchange(mountpoint: string, draft: string): Promise<void> {
        const files = this.#ctx.files('/');
        const [content, next] = [fromRoot(mountpoint), fromRoot(draft)];
        const before = besides(next);
        // Not every engine takes these of the folder itself from an archive, and a container that is not root needs them.
        const { mode, uid, gid } = await files.stat(content);
        await files.chown(next, uid, gid);
        await files.chmod(next, mode);
        await files.move(content, before, inOneStep);
        try {
            await files.move(next, content, inOneStep);
        } catch (error) {
            await files.move(before, content, inOneStep);
            throw error;
        }
        await files.move(before, next, inOneStep);
    }

    /** Removes containers and volumes that a panel which was killed made for archives. A volume whose content was being exchanged has the old one again. */
    async sweep(): Promise<void> {
        for (const { Id: id } of await this.#inventory.helpers()) {
            await this.#making.remove(id);
        }
        const volumes = await this.#inventory.volumes();
        for (const { Name: name, Mountpoint: draft, Labels: labels } of await this.#inventory.drafts()) {
            const content = volumes.get(labels?.[labelOf.helper] ?? '')?.Mountpoint;
            if (content !== undefined) {
                await this.#restoreCut(content, besides(draft));
            }
            await this.#engine.call('DELETE', `/volumes/${name}`);
        }
    }

    async #restoreCut(content: string, before: string): Promise<void> {
        const files = this.#ctx.files('/');
        const isThere = (path: string): Promise<boolean> =>
            files.stat(fromRoot(path)).then(
                () => true,
                (error: unknown) => {
                    if (isFailure(error) && error.code === 40400) {
                        return false;
                    }
                    throw error;
                }
            );
        if ((await isThere(before)) && !(await isThere(content))) {
            await files.move(fromRoot(before), fromRoot(content), inOneStep);
        }
    }

    async #helper(volume: string, readOnly: boolean): Promise<string> {
        if ((await this.#inventory.image(emptyImage)) === null) {
            await this.#engine.call('POST', '/images/create', {
                query: { fromSrc: '-', repo: 'portico-empty', tag: 'latest' },
                body: (async function* bytes() {
                    yield tarOf([{ path: '/.empty', content: '', mode: 0o444, uid: 0, gid: 0 }]);
                })(),
                patienceMs: 60_000
            });
        }
        return this.#making.create({
            ...emptySpec,
            name: newName(),
            image: emptyImage,
            command: ['/.empty'],
            networkMode: 'none',
            labels: { [labelOf.helper]: 'volume' },
            mounts: [
                {
                    type: 'volume',
                    source: volume,
                    written: volume,
                    target: folder,
                    readOnly,
                    propagation: '',
                    tmpfsBytes: null,
                    volume: { driver: 'local', options: {}, external: true }
                }
            ]
        });
    }
}

/** @param users - names of the containers that have the volume */
export const volumeInUse = (users: readonly string[]): FailureError =>
    errors.inUse(
        users.join(', '),
        `Containers have this volume, also where they are stopped: ${users.join(', ')}. Remove them first`
    );

/** Whether a volume is a folder of the engine's own, and not a mount of something else. */
export const isPlain = ({ Driver: driver, Options: options }: EngineVolume): boolean =>
    driver === 'local' && Object.keys(options ?? {}).length === 0;
