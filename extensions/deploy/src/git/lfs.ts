/**
 * Git LFS, by its batch API (git-lfs `docs/api/batch.md`). The plugin asks and downloads itself: the program `git-lfs` would connect to whatever
 * addresses a repository and its server name, and those of the panel are checked.
 */
import { createHash } from 'node:crypto';

import { joi } from '@portico/sdk';

import { DeploymentFailed } from '../errors.ts';
import type { Folders } from '../releases/folders.ts';
import type { Ctx } from '../settings.ts';
import { readJson } from './answers.ts';
import type { Git, Remote } from './git.ts';
import { type Endpoint, findEndpoint } from './remote/endpoint.ts';

/** A file of a checkout that stands for another one. */
interface Pointer {
    readonly path: string;
    readonly oid: string;
    readonly size: number;
}

/** Where an object is. */
interface Download {
    readonly href: string;
    readonly header?: Readonly<Record<string, string>>;
}

/** An object as the server answers. */
interface Found {
    readonly oid: string;
    readonly authenticated?: boolean;
    readonly actions?: { readonly download?: Download };
    readonly error?: { readonly message?: string };
}

const pointerForm =
    /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:[a-z0-9.-]+ .*\n)*?oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n$/;
const mostPointerBytes = 1_024;
const mostObjects = 20_000;
const mostBytes = 8 * 2 ** 30;
const atOnce = 100;
const mostAnswerBytes = 16 * 2 ** 20;
const mediaType = 'application/vnd.git-lfs+json';

const batchSchema = joi
    .object({
        objects: joi
            .array()
            .items(
                joi
                    .object({
                        oid: joi.string().required(),
                        authenticated: joi.boolean(),
                        actions: joi
                            .object({
                                download: joi
                                    .object({
                                        href: joi.string().max(10_000).required(),
                                        header: joi.record(joi.string())
                                    })
                                    .unknown(true)
                            })
                            .unknown(true),
                        error: joi.object({ message: joi.string().allow('') }).unknown(true)
                    })
                    .unknown(true)
            )
            .max(atOnce)
            .required()
    })
    .unknown(true);

/** Puts the files of Git LFS into checkouts. */
export class Lfs {
    readonly #ctx: Ctx;
    readonly #folders: Folders;
    readonly #git: Git;

    constructor(ctx: Ctx, folders: Folders, git: Git) {
        this.#ctx = ctx;
        this.#folders = folders;
        this.#git = git;
    }

    /** Replaces the pointers of a checkout by what they stand for. Resolves with how many there were. @throws DeploymentFailed FETCH_FAILED, TOO_LARGE */
    async replace(checkout: string, remote: Remote, signal: AbortSignal): Promise<number> {
        const pointers = await this.#pointers(checkout);
        if (pointers.length === 0) {
            return 0;
        }
        if (pointers.reduce((sum, { size }) => sum + size, 0) > mostBytes) {
            throw new DeploymentFailed('TOO_LARGE', `The files of Git LFS have more than ${mostBytes} bytes`);
        }
        for (let at = 0; at < pointers.length; at += atOnce) {
            const part = pointers.slice(at, at + atOnce);
            // Anew for each part: what a server lets in over ssh is good for minutes.
            const endpoint = await findEndpoint(this.#git, remote, signal);
            const found = await this.#ask(endpoint, part, signal);
            for (const pointer of part) {
                await this.#download(checkout, endpoint, pointer, found.get(pointer.oid), signal);
            }
        }
        return pointers.length;
    }

    async #pointers(checkout: string): Promise<readonly Pointer[]> {
        const { files } = this.#folders;
        const found: Pointer[] = [];
        const look = async (folder: string): Promise<void> => {
            for (const { name, type, size } of await files.list(`${checkout}/${folder}`)) {
                const path = folder === '' ? name : `${folder}/${name}`;
                if (type === 'folder') {
                    await look(path);
                } else if (type === 'file' && size <= mostPointerBytes) {
                    await using file = await files.open(`${checkout}/${path}`);
                    const [, oid, bytes] = pointerForm.exec(await file.readFile('utf8')) ?? [];
                    if (oid !== undefined) {
                        found.push({ path, oid, size: Number(bytes) });
                    }
                    if (found.length > mostObjects) {
                        throw new DeploymentFailed(
                            'TOO_LARGE',
                            `There are more than ${mostObjects} files of Git LFS`
                        );
                    }
                }
            }
        };
        await look('');
        return found;
    }

    /** Asks where objects are. */
    async #ask(
        { url, headers }: Endpoint,
        pointers: readonly Pointer[],
        signal: AbortSignal
    ): Promise<ReadonlyMap<string, Found>> {
        const answer = await this.#fetch(`${url}/objects/batch`, {
            method: 'POST',
            redirect: 'error',
            headers: { ...headers, accept: mediaType, 'content-type': mediaType },
            body: JSON.stringify({
                ...{ operation: 'download', transfers: ['basic'], hash_algo: 'sha256' },
                objects: pointers.map(({ oid, size }) => ({ oid, size }))
            }),
            signal
        });
        const { error, value } = batchSchema.validate(await readJson(answer, mostAnswerBytes)) as {
            error?: Error;
            value: { readonly objects: readonly Found[] };
        };
        if (error !== undefined) {
            throw new DeploymentFailed(
                'FETCH_FAILED',
                `Git LFS: the answer cannot be read: ${error.message}`
            );
        }
        return new Map(value.objects.map((each) => [each.oid, each]));
    }

    /** Writes an object over its pointer, and checks that it is what the pointer says. */
    async #download(
        checkout: string,
        endpoint: Endpoint,
        { path, oid, size }: Pointer,
        found: Found | undefined,
        signal: AbortSignal
    ): Promise<void> {
        const download = found?.actions?.download;
        if (download === undefined) {
            const why = found?.error?.message ?? 'the server does not have it';
            throw new DeploymentFailed('FETCH_FAILED', `Git LFS: ${path}: ${why}`);
        }
        const isOwn = found?.authenticated !== true && isOfServer(download.href, endpoint);
        const headers = { ...(isOwn ? endpoint.headers : {}), ...download.header };
        const answer = await this.#fetch(download.href, { headers, signal });
        const hash = createHash('sha256');
        let bytes = 0;
        await using file = await this.#folders.files.open(`${checkout}/${path}`, 'w');
        for await (const chunk of answer.body ?? []) {
            bytes += chunk.byteLength;
            if (bytes > size) {
                break;
            }
            hash.update(chunk);
            await file.writeFile(chunk);
        }
        if (bytes !== size || hash.digest('hex') !== oid) {
            throw new DeploymentFailed('FETCH_FAILED', `Git LFS: the server gave something else for ${path}`);
        }
    }

    async #fetch(url: string, init: RequestInit): Promise<Response> {
        const answer = await this.#ctx.fetch(url, init).catch((error: unknown) => {
            init.signal?.throwIfAborted();
            throw new DeploymentFailed('FETCH_FAILED', `Git LFS: ${(error as Error).message}`, {
                cause: error
            });
        });
        if (!answer.ok) {
            throw new DeploymentFailed('FETCH_FAILED', `Git LFS: the server answered ${answer.status}`);
        }
        return answer;
    }
}

/** Whether an address is of the server that the headers are for. */
function isOfServer(href: string, { url }: Endpoint): boolean {
    return URL.canParse(href) && new URL(href).origin === new URL(url).origin;
}
