/** Runs git: with an environment of its own, as the account of the plugin, and only to addresses that were checked. */
import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';

import { errors, type ExecResult } from '@portico/sdk';

import { DeploymentFailed, fail } from '../errors.ts';
import type { Folders } from '../releases/folders.ts';
import type { Ctx } from '../settings.ts';
import { type Access, type Credentials, gitEnvironment, keyFile, sshOptions } from './credentials.ts';
import { type Address, submoduleAddress } from './remote/address.ts';
import { askRef } from './remote/ask-ref.ts';
import { commitForm } from './remote/refs.ts';

/** What a commit says of itself. */
export interface CommitInfo {
    readonly commit: string;
    readonly message: string;
    readonly author: string;
}

/** Where a repository is and what opens it. */
export interface Remote {
    readonly address: Address;
    readonly credentials: Credentials | null;
}

/** Programs that reach repositories, with the command that brings each. */
const programs = { git: 'apt-get install git', ssh: 'apt-get install openssh-client' } as const;

/** How git, or ssh alone, runs beside its arguments. */
interface GitOptions {
    /** Default: git. */
    readonly file?: keyof typeof programs;
    readonly access?: Access;
    readonly env?: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly timeoutSeconds?: number;
    readonly maxOutputBytes?: number;
}

const fetchSeconds = 900;
const deepestSubmodules = 5;
const mostSubmodules = 100;
/** What git says whatever the reason, and the frame that ssh puts around a warning. */
const advice = /^(?:Please make sure|and the repository exists|@+$|\s*$)/;
/** A gitlink in the output of ls-tree. */
const gitlink = /^160000 commit ([0-9a-f]+)\t(.+)$/;

/** Networks that no request from outside can come from: an admin who granted an address in them meant it. */
const inner = new BlockList();
for (const [network, bits] of [
    ['10.0.0.0', 8],
    ['127.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16]
] as const) {
    inner.addSubnet(network, bits, 'ipv4');
}
for (const [network, bits] of [
    ['::1', 128],
    ['fc00::', 7]
] as const) {
    inner.addSubnet(network, bits, 'ipv6');
}

/** Fetches commits and checks them out. */
export class Git {
    readonly #ctx: Ctx;
    readonly #folders: Folders;

    constructor(ctx: Ctx, folders: Folders) {
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** Checks that a repository may be reached now. @throws REPOSITORY_REFUSED 42250; CAPABILITY_MISSING 50305; NOT_FOUND 40400 */
    async open({ address, credentials }: Remote): Promise<Access> {
        const addresses = await this.#ctx.resolve(address.host);
        const isInner = (each: string): boolean => inner.check(each, isIP(each) === 6 ? 'ipv6' : 'ipv4');
        if (address.scheme === 'http' && !addresses.every(isInner)) {
            throw fail.REPOSITORY_REFUSED({
                why: 'Without TLS, only an inner address that was granted is reached'
            });
        }
        return { address, addresses, credentials };
    }

    /** The commit that a branch or tag names now; null when the repository has none of that name. @throws DeploymentFailed FETCH_FAILED */
    async head(remote: Remote, ref: string, signal: AbortSignal): Promise<string | null> {
        const access = await this.open(remote);
        const known =
            access.address.scheme === 'ssh' ? undefined : await this.#askOverHttp(access, ref, signal);
        if (known !== undefined) {
            return known;
        }
        const { stdout } = await this.#ask(['ls-remote', '--', access.address.url, ref], {
            access,
            signal,
            timeoutSeconds: 60
        });
        const found = stdout
            .split('\n')
            .map((line) => line.split('\t'))
            // A tag with a text of its own is followed by what it names.
            .filter(([, name]) => name === ref || name === `${ref}^{}`);
        return found.at(-1)?.[0] ?? null;
    }

    /** Undefined: only git can ask this server, or say what is wrong with it. @throws DeploymentFailed FETCH_FAILED for one that does not answer */
    async #askOverHttp(access: Access, ref: string, signal: AbortSignal): Promise<string | null | undefined> {
        try {
            return await askRef((url, init) => this.#ctx.fetch(url as string, init), access, ref, signal);
        } catch (error) {
            signal.throwIfAborted();
            if ((error as Error).name === 'TimeoutError') {
                throw new DeploymentFailed('FETCH_FAILED', 'The git server gave no answer in time', {
                    cause: error
                });
            }
            return undefined;
        }
    }

    /** Makes sure that a repository of the plugin's own has a commit, and gives what that says. @throws DeploymentFailed FETCH_FAILED */
    async fetch(path: string, remote: Remote, commit: string, signal: AbortSignal): Promise<CommitInfo> {
        const folder = this.#folders.absolute(path);
        const here = `--git-dir=${folder}`;
        if (!(await this.#folders.has(`${path}/HEAD`))) {
            await this.#ask(['init', '--quiet', '--bare', '--', folder], { signal });
        }
        if (!(await this.#has(here, commit, signal))) {
            const access = await this.open(remote);
            const options = { access, signal, timeoutSeconds: fetchSeconds };
            const fetch = [
                here,
                'fetch',
                '--quiet',
                '--no-tags',
                '--no-write-fetch-head',
                '--no-recurse-submodules'
            ];
            const { url } = access.address;
            const one = await this.#run([...fetch, '--depth=1', '--', url, commit], options);
            if (one.code !== 0) {
                // Some servers give branches only.
                await this.#ask([...fetch, '--', url, '+refs/heads/*:refs/portico/*'], options);
            }
        }
        const { stdout } = await this.#ask([here, 'log', '-1', '--format=%H%n%an%n%B', commit, '--'], {
            signal
        });
        const [found = '', author = '', ...lines] = stdout.split('\n');
        if (found !== commit) {
            throw new DeploymentFailed('FETCH_FAILED', `The repository gave ${found} instead of ${commit}`);
        }
        return { commit, author: author.slice(0, 200), message: lines.join('\n').trim().slice(0, 2_000) };
    }

    /** Writes the files of a commit into a folder of the plugin's own. */
    async checkout(path: string, commit: string, target: string, signal: AbortSignal): Promise<void> {
        const place = [
            `--git-dir=${this.#folders.absolute(path)}`,
            `--work-tree=${this.#folders.absolute(target)}`
        ];
        const options = {
            signal,
            timeoutSeconds: fetchSeconds,
            env: { GIT_INDEX_FILE: `${this.#folders.absolute(target)}.index` }
        };
        await this.#ask([...place, 'read-tree', commit], options);
        await this.#ask([...place, 'checkout-index', '--all', '--force'], options);
        await this.#folders.remove(`${target}.index`);
    }

    /** Fetches and checks out the submodules of a commit, and theirs. @throws DeploymentFailed FETCH_FAILED; REPOSITORY_REFUSED 42250 */
    async submodules(
        path: string,
        commit: string,
        target: string,
        remote: Remote,
        signal: AbortSignal,
        depth = 0
    ): Promise<void> {
        const here = `--git-dir=${this.#folders.absolute(path)}`;
        const links = await this.#links(here, commit, signal);
        if (links.length === 0) {
            return;
        }
        if (depth >= deepestSubmodules || links.length > mostSubmodules) {
            throw new DeploymentFailed('FETCH_FAILED', 'The submodules are too deep, or too many');
        }
        const urls = await this.#urls(here, commit, signal);
        for (const link of links) {
            const url = urls.get(link.path);
            if (
                url === undefined ||
                link.path.split('/').some((part) => part === '..' || part === '.git' || part.startsWith('-'))
            ) {
                throw new DeploymentFailed(
                    'FETCH_FAILED',
                    `The submodule ${link.path} has no address, or no path that is accepted`
                );
            }
            const address = submoduleAddress(remote.address, url);
            const sameHost = address.host === remote.address.host && address.port === remote.address.port;
            const child = { address, credentials: sameHost ? remote.credentials : null };
            const store = `${path}-modules-${createHash('sha256').update(address.url).digest('hex').slice(0, 32)}`;
            await this.#folders.own(store);
            await this.fetch(store, child, link.commit, signal);
            await this.checkout(store, link.commit, `${target}/${link.path}`, signal);
            await this.submodules(store, link.commit, `${target}/${link.path}`, child, signal, depth + 1);
        }
    }

    /** What a command prints that the server of a repository runs over ssh. @param command - a line that the server's shell reads @throws DeploymentFailed FETCH_FAILED */
    async runOnServer(remote: Remote, command: string, signal: AbortSignal): Promise<string> {
        const access = await this.open(remote);
        const { url, host, port } = access.address;
        const [, user = ''] = /^(?:ssh:\/\/)?([^@/]+@)/.exec(url) ?? [];
        const { stdout } = await this.#ask(
            [...sshOptions(access), '-p', String(port), '--', user + host, command],
            { file: 'ssh', access, signal, timeoutSeconds: 60, maxOutputBytes: 65_536 }
        );
        return stdout;
    }

    async #links(
        here: string,
        commit: string,
        signal: AbortSignal
    ): Promise<readonly { readonly commit: string; readonly path: string }[]> {
        const { stdout } = await this.#ask([here, 'ls-tree', '-r', '-z', commit, '--'], {
            signal,
            maxOutputBytes: 64 * 2 ** 20
        });
        return stdout.split('\0').flatMap((line) => {
            const [, id, path] = gitlink.exec(line) ?? [];
            return id !== undefined && path !== undefined && commitForm.test(id)
                ? [{ commit: id, path }]
                : [];
        });
    }

    /** Addresses of submodules by their paths. */
    async #urls(here: string, commit: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
        const { stdout } = await this.#ask(
            [here, 'config', '--blob', `${commit}:.gitmodules`, '--null', '--list'],
            {
                signal
            }
        );
        const fields = new Map<string, string>();
        for (const entry of stdout.split('\0')) {
            const at = entry.indexOf('\n');
            fields.set(entry.slice(0, at), entry.slice(at + 1));
        }
        return new Map(
            [...fields]
                .filter(([key]) => /^submodule\..*\.path$/s.test(key))
                .map(([key, path]) => [path, fields.get(key.replace(/path$/, 'url')) ?? ''])
        );
    }

    async #has(here: string, commit: string, signal: AbortSignal): Promise<boolean> {
        const { code } = await this.#run([here, 'cat-file', '-e', `${commit}^{tree}`], { signal });
        return code === 0;
    }

    /** Runs a program, and fails with what it says when it fails. */
    async #ask(args: readonly string[], options: GitOptions): Promise<ExecResult> {
        const result = await this.#run(args, options);
        if (result.code !== 0) {
            options.signal.throwIfAborted();
            const said = result.stderr
                .trim()
                .split('\n')
                .filter((line) => !advice.test(line))
                .slice(-8)
                .join(' ')
                .slice(0, 800);
            throw new DeploymentFailed(
                'FETCH_FAILED',
                result.timedOut
                    ? `${options.file ?? 'git'} took too long`
                    : `${options.file ?? 'git'}: ${said}`
            );
        }
        return result;
    }

    async #run(
        args: readonly string[],
        { file = 'git', access, env, ...options }: GitOptions
    ): Promise<ExecResult> {
        const { name } = await this.#folders.account();
        const key = access?.credentials?.kind === 'key' ? access.credentials.privateKey : null;
        return this.#ctx
            .exec(file, args, {
                timeoutSeconds: 120,
                ...options,
                user: name,
                umask: 0o022,
                env: { ...gitEnvironment(access ?? null), ...env },
                ...(key === null ? { cwd: '/' } : { privateFiles: { [keyFile]: key } })
            })
            .catch((error: unknown) => {
                const { code, message } = error as { code?: unknown; message?: string };
                throw code === 50302 && message?.startsWith(`${file} `) === true
                    ? errors.toolMissing(file, programs[file])
                    : error;
            });
    }
}
