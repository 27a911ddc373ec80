/** Reads repositories with git itself: one commit, without a checkout, hooks, submodules or redirects, from the address that was checked. */
import { errors } from '@portico/sdk';

import { judgeUrl } from '../catalogue/fetching.ts';
import type { SourceRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';

const timeoutSeconds = 300;
const mostPackBytes = 1_073_741_824;
const mostListBytes = 32 * 1_048_576;
const mostFileBytes = 4 * 1_048_576;
const mostFiles = 30_000;
const install = 'apt-get install git';

/** A commit of a repository, of which files can be read. */
export interface Repository extends AsyncDisposable {
    readonly commit: string;
    /** Regular files by path; links and submodules are none. */
    readonly paths: readonly string[];
    /** The bytes of some files; what is not there or has more than 4 MiB is left out. */
    read(paths: readonly string[]): Promise<ReadonlyMap<string, string>>;
    /** The bytes of a file that is no text; null when it is not there, or has more than `mostBytes`. */
    readBytes(path: string, mostBytes: number): Promise<Buffer | null>;
}

/** How git runs: with nothing of the machine's or of a user's configuration. */
class Git {
    readonly #ctx: Ctx;
    readonly #folder: string;
    readonly #signal: AbortSignal;
    readonly #config: readonly string[];
    readonly #protocol: string;

    constructor(
        ctx: Ctx,
        folder: string,
        { url, address, signal }: { url: URL; address: string; signal: AbortSignal }
    ) {
        const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
        this.#ctx = ctx;
        this.#folder = folder;
        this.#signal = signal;
        this.#protocol = url.protocol.slice(0, -1);
        this.#config = [
            `http.curloptResolve=${url.hostname}:${port}:${address}`,
            'http.followRedirects=false',
            'core.hooksPath=/dev/null',
            'transfer.fsckObjects=true',
            'gc.auto=0',
            'credential.helper='
        ].flatMap((each) => ['-c', each]);
    }

    async run(args: readonly string[], stdin = '', maxOutputBytes = mostListBytes): Promise<string> {
        const result = await this.#ctx.exec('git', [...this.#config, ...args], {
            ...this.#options(),
            stdin,
            maxOutputBytes
        });
        if (result.timedOut || result.truncated) {
            throw fail.SOURCE_UNREACHABLE({
                why: result.timedOut ? 'git took too long' : 'git said too much'
            });
        }
        if (result.code !== 0) {
            const line = result.stderr.trim().split('\n').at(-1) ?? '';
            throw fail.SOURCE_UNREACHABLE({ why: `git: ${line.slice(0, 300)}` });
        }
        return result.stdout;
    }

    /** As {@link Git.run}, with what it says as bytes; null when git failed. */
    async bytes(args: readonly string[]): Promise<Buffer | null> {
        await using child = await this.#ctx.spawn('git', [...this.#config, ...args], this.#options());
        const [stdout] = await Promise.all([collect(child.stdout), collect(child.stderr)]);
        return (await child.exited).code === 0 ? stdout : null;
    }

    #options() {
        return {
            env: {
                GIT_DIR: this.#folder,
                GIT_CONFIG_NOSYSTEM: '1',
                GIT_CONFIG_GLOBAL: '/dev/null',
                GIT_TERMINAL_PROMPT: '0',
                GIT_ALLOW_PROTOCOL: this.#protocol,
                GIT_ASKPASS: '/bin/false'
            },
            timeoutSeconds,
            limits: { fileBytes: mostPackBytes },
            signal: this.#signal
        };
    }
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of source) {
        chunks.push(chunk);
    }
    return Buffer.concat(chunks);
}

/**
 * Fetches the newest commit of a source's branch.
 *
 * @returns null when it is the one that was taken last
 * @throws SOURCE_UNREACHABLE 50250; TOOL_MISSING 50302 without git
 */
export async function openRepository(
    ctx: Ctx,
    source: SourceRow,
    signal: AbortSignal
): Promise<Repository | null> {
    const url = await judgeUrl(ctx, source.url);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const [address] = await ctx.resolve(host).catch((error: Error) => {
        throw fail.SOURCE_UNREACHABLE({ why: error.message }, { cause: error });
    });
    const name = `git-${source.name}`;
    const own = ctx.files(ctx.dataDir);
    const remove = (): Promise<void> => own.remove(name, { recursive: true }).catch(() => undefined);
    const git = new Git(ctx, `${ctx.dataDir}/${name}`, { url, address: address ?? host, signal });
    await remove();
    try {
        await git.run(['init', '--quiet', '--bare', `${ctx.dataDir}/${name}`]);
        const ref = source.branch === null ? 'HEAD' : `refs/heads/${source.branch}`;
        const [, commit] =
            /^([0-9a-f]{40}|[0-9a-f]{64})\t/.exec(await git.run(['ls-remote', '--', url.href, ref])) ?? [];
        if (commit === undefined) {
            throw fail.SOURCE_UNREACHABLE({ why: `the repository has no ${ref}` });
        }
        if (commit === source.commit) {
            await remove();
            return null;
        }
        await git.run([
            'fetch',
            '--quiet',
            '--depth=1',
            '--no-tags',
            '--no-recurse-submodules',
            '--',
            url.href,
            ref
        ]);
        const fetched = (await git.run(['rev-parse', 'FETCH_HEAD'])).trim();
        const blobs = blobsOf(await git.run(['ls-tree', '-r', '-z', '--long', fetched]));
        return {
            commit: fetched,
            paths: [...blobs.keys()],
            read: (paths) => readBlobs(git, blobs, paths),
            readBytes: async (path, mostBytes) => {
                const blob = blobs.get(path);
                return blob === undefined || blob.size > mostBytes
                    ? null
                    : git.bytes(['cat-file', 'blob', blob.id]);
            },
            [Symbol.asyncDispose]: remove
        };
    } catch (error) {
        await remove();
        if ((error as { code?: unknown }).code === 50302) {
            throw errors.toolMissing('git', install);
        }
        throw error;
    }
}

interface Blob {
    readonly id: string;
    readonly size: number;
}

function blobsOf(list: string): ReadonlyMap<string, Blob> {
    const blobs = new Map<string, Blob>();
    for (const line of list.split('\0')) {
        const [, mode, id = '', size, path = ''] =
            /^(\d{6}) blob ([0-9a-f]+) +(\d+)\t([\s\S]+)$/.exec(line) ?? [];
        if ((mode === '100644' || mode === '100755') && Number(size) <= mostFileBytes) {
            blobs.set(path, { id, size: Number(size) });
        }
        if (blobs.size > mostFiles) {
            throw fail.SOURCE_UNREACHABLE({ why: `the repository has more than ${mostFiles} files` });
        }
    }
    return blobs;
}

async function readBlobs(
    git: Git,
    blobs: ReadonlyMap<string, Blob>,
    paths: readonly string[]
): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const path of paths) {
        const blob = blobs.get(path);
        if (blob !== undefined) {
            found.set(path, await git.run(['cat-file', 'blob', blob.id], '', blob.size + 1));
        }
    }
    return found;
}
