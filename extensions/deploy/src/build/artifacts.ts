/** Packs what a build made, and unpacks it as a release. The archive passes by and is checked on its way. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

import { DeploymentFailed } from '../errors.ts';
import type { Folders } from '../releases/folders.ts';
import type { Sandboxes } from '../sandbox/programs.ts';
import { appFolder, type Bind } from '../sandbox/sandbox.ts';
import { Inventory } from './links.ts';
import { TarBroken, TarReader } from './tar.ts';

/** An archive that was made. */
export interface Artifact {
    readonly sha256: string;
    readonly bytes: number;
    readonly inventory: Inventory;
}

/** Which files of a checkout become an archive, and where it is written. */
export interface Packing {
    readonly binds: readonly Bind[];
    /** Below the checkout; empty for all of it. */
    readonly folder: string;
    /** Path of the archive, relative to the folder of the plugin. */
    readonly target: string;
    /** Files that are packed, sorted, below the folder; default: all of them. */
    readonly names?: readonly string[] | null;
    readonly signal: AbortSignal;
}

/** A larger release is refused. */
const mostBytes = 8 * 2 ** 30;
const packSeconds = 1_800;
const releaseFolder = '/release';
const messageBytes = 4_096;

/** Packs and unpacks releases. */
export class Artifacts {
    readonly #folders: Folders;
    readonly #sandboxes: Sandboxes;

    constructor(folders: Folders, sandboxes: Sandboxes) {
        this.#folders = folders;
        this.#sandboxes = sandboxes;
    }

    /**
     * Writes the archive of a folder. Times and owners are not in it, and names are sorted: the same files give the same archive.
     *
     * @throws DeploymentFailed BUILD_FAILED for a link that leads out, or no such folder; TOO_LARGE
     */
    async pack({ binds, folder, target, names = null, signal }: Packing): Promise<Artifact> {
        const child = await this.#sandboxes.spawn({
            binds,
            cwd: appFolder,
            network: false,
            command: [
                'tar',
                '--create',
                '--file=-',
                '--format=gnu',
                '--sort=name',
                '--mtime=@0',
                '--owner=0',
                '--group=0',
                '--numeric-owner',
                '--mode=u+rwX,go+rX,go-w',
                '--hard-dereference',
                '--exclude=./.git',
                `--directory=${folder === '' ? '.' : `./${folder}`}`,
                ...(names === null
                    ? ['.']
                    : ['--no-recursion', '--null', '--verbatim-files-from', '--files-from=-'])
            ],
            env: {},
            limits: {},
            timeoutSeconds: packSeconds,
            signal
        });
        void feed(child.stdin, names ?? []);
        const said = textOf(child.stderr);
        const hash = createHash('sha256');
        const inventory = new Inventory();
        const reader = new TarReader((entry) => inventory.add(entry));
        let bytes = 0;
        const file = await this.#folders.newFile(target);
        try {
            for await (const chunk of child.stdout) {
                bytes += chunk.byteLength;
                if (bytes > mostBytes) {
                    throw new DeploymentFailed('TOO_LARGE', `The release has more than ${mostBytes} bytes`);
                }
                hash.update(chunk);
                reader.add(chunk);
                await file.appendFile(chunk);
            }
            const { code } = await child.exited;
            signal.throwIfAborted();
            if (code !== 0) {
                throw new DeploymentFailed('BUILD_FAILED', `It could not be packed: ${await said}`);
            }
            reader.end();
            await file.sync();
        } catch (error) {
            await child[Symbol.asyncDispose]();
            throw error instanceof TarBroken
                ? new DeploymentFailed('BUILD_FAILED', error.message, { cause: error })
                : isFull(error)
                  ? new DeploymentFailed('TOO_LARGE', 'There is no space left for the release', {
                        cause: error
                    })
                  : error;
        } finally {
            await file.close();
        }
        const outside = inventory.outside();
        if (outside !== null) {
            throw new DeploymentFailed(
                'BUILD_FAILED',
                `${outside} leads out of the release, or is neither a file, a folder nor a link`
            );
        }
        return { sha256: hash.digest('hex'), bytes, inventory };
    }

    /** Makes a release of an archive: a folder of the account's own, which no program sees other than to read. @throws DeploymentFailed TOO_LARGE */
    async unpack(archive: string, release: string, signal: AbortSignal): Promise<void> {
        await this.#folders.remove(release);
        // The engine reads files of static sites.
        await this.#folders.own(release, 0o755);
        const child = await this.#sandboxes.spawn({
            binds: [{ source: this.#folders.absolute(release), target: releaseFolder, writable: true }],
            cwd: releaseFolder,
            network: false,
            command: [
                'tar',
                '--extract',
                '--file=-',
                '--no-same-owner',
                '--touch',
                '--delay-directory-restore'
            ],
            env: {},
            limits: {},
            timeoutSeconds: packSeconds,
            signal
        });
        const said = textOf(child.stderr);
        const file = await this.#folders.files.open(archive);
        const bytes = Readable.toWeb(
            file.createReadStream({ autoClose: false })
        ) as ReadableStream<Uint8Array>;
        const sent = bytes.pipeTo(child.stdin).catch(() => undefined);
        const printed = child.stdout.pipeTo(new WritableStream());
        const { code } = await child.exited;
        await Promise.all([sent, printed]);
        await file.close();
        signal.throwIfAborted();
        if (code !== 0) {
            throw new DeploymentFailed('TOO_LARGE', `The release could not be written: ${await said}`);
        }
    }
}

/** Tells a program the names of files. */
async function feed(stdin: WritableStream<Uint8Array>, names: readonly string[]): Promise<void> {
    const writer = stdin.getWriter();
    try {
        await writer.write(Buffer.from(names.map((name) => `./${name}\0`).join('')));
        await writer.close();
    } catch {
        // The program ended before it read all of them, and says why.
    }
}

/** The beginning of what a program prints; the rest is read and dropped. */
async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of stream) {
        if (text.length < messageBytes) {
            text += decoder.decode(chunk, { stream: true });
        }
    }
    return text.slice(0, messageBytes).trim();
}

function isFull(error: unknown): boolean {
    const { code } = error as { code?: unknown };
    return code === 'ENOSPC' || code === 'EDQUOT' || code === 50700;
}
